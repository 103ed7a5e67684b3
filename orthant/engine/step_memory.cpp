#include "orthant/engine/step_memory.hpp"

#include <algorithm>
#include <chrono>

namespace orthant::engine {
namespace {

std::int64_t padded_bytes(const schedule::Schedule& schedule, int argument) {
  return (schedule.buffers[static_cast<std::size_t>(argument)].bytes + 4095) / 4096 * 4096;
}

double seconds_of(kernels::Primitive& primitive, std::span<void* const> arguments, void* scratch) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  primitive.execute({}, arguments, scratch);
  return std::chrono::duration<double>(Clock::now() - start).count();
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
  double best = seconds_of(primitive, arguments, scratch.data());
  if (best > timing.hopeless) return best;
  double spent = 0;
  for (int run = 0; run < 2 || (spent < timing.seconds && run < timing.runs); ++run) {
    const double seconds = seconds_of(primitive, arguments, scratch.data());
    best = run == 0 ? seconds : std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace orthant::engine
