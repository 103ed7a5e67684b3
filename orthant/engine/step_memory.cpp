#include "orthant/engine/step_memory.hpp"

#include <algorithm>
#include <chrono>

namespace orthant::engine {
namespace {

std::int64_t padded_bytes(const schedule::Schedule& schedule, int argument) {
  return (schedule.buffers[static_cast<std::size_t>(argument)].bytes + 4095) / 4096 * 4096;
}

double seconds_of(const std::function<void()>& run) {
  const double start = clock_seconds();
  run();
  return clock_seconds() - start;
}

}  // namespace

std::int64_t step_bytes(const schedule::Schedule& schedule, const schedule::Step& step) {
  std::int64_t bytes = 4096;
  for (const int argument : step.arguments) bytes += argument < 0 ? 0 : padded_bytes(schedule, argument);
  return bytes;
}

StepMemory::StepMemory(const schedule::Schedule& schedule, const schedule::Step& step)
    : arena_(step_bytes(schedule, step)) {
  std::byte* at = arena_.data();
  for (const int argument : step.arguments) {
    arguments_.push_back(argument < 0 ? nullptr : at);
    if (argument >= 0) at += padded_bytes(schedule, argument);
  }
  auto* numbers = reinterpret_cast<float*>(arena_.data());
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < arena_.bytes() / 4; ++i) {
    state = state * 1664525U + 1013904223U;
    numbers[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-34F;
  }
}

double best_seconds(kernels::Primitive& primitive, std::span<void* const> arguments, const Timing& timing) {
  const Arena scratch(std::max<std::int64_t>(primitive.scratch_bytes(), 64));
  const auto execute = [&] { primitive.execute({}, arguments, scratch.data()); };
  execute();
  double best = 1e30;
  double spent = 0;
  for (int run = 0; run < 2 || (spent < timing.seconds && run < timing.runs); ++run) {
    const double seconds = seconds_of(execute);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

double shortest_run(const std::function<void()>& run) {
  constexpr double enough_seconds = 0.005;
  constexpr int most_runs = 20;
  double spent = seconds_of(run);
  double shortest = spent;
  for (int i = 1; i < most_runs && spent + shortest < enough_seconds; ++i) {
    const double seconds = seconds_of(run);
    shortest = std::min(shortest, seconds);
    spent += seconds;
  }
  return shortest;
}

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace orthant::engine
