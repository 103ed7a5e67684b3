#include "orthant/engine/engine.hpp"

#include "orthant/base/error.hpp"

#include <chrono>

namespace orthant::engine {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Makes the kernel of a step; an error names the step.
std::unique_ptr<kernels::Primitive> bind(const schedule::Step& step, int threads) {
  try {
    return kernels::make_primitive(step.task, threads);
  } catch (const base::Error& error) {
    throw base::Error(error.code(), step.name + ": " + error.what());
  }
}

}  // namespace

Engine::Engine(schedule::Schedule schedule, const EngineOptions& options) : schedule_(std::move(schedule)) {
  std::vector<std::int64_t> scratch_bytes;
  for (const schedule::Step& step : schedule_.steps) {
    primitives_.push_back(bind(step, options.threads));
    scratch_bytes.push_back(primitives_.back()->scratch_bytes());
  }
  placement_ = schedule::place(schedule_, scratch_bytes);
  if (options.before_allocation) options.before_allocation(placement_);
  arena_ = std::make_unique<Arena>(placement_.arena_bytes);

  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    std::vector<void*> pointers;
    for (const int argument : schedule_.steps[i].arguments) {
      pointers.push_back(argument < 0 ? nullptr
                                      : arena_->data() + placement_.offsets[static_cast<std::size_t>(argument)]);
    }
    arguments_.push_back(std::move(pointers));
    scratch_.push_back(arena_->data() + placement_.scratch_offsets[i]);
  }
}

void Engine::run(const kernels::Context& context) {
  for (std::size_t i = 0; i < primitives_.size(); ++i) primitives_[i]->execute(context, arguments_[i], scratch_[i]);
}

void Engine::run(const kernels::Context& context, Trace& trace) {
  for (std::size_t i = 0; i < primitives_.size(); ++i) {
    const std::int64_t begin = now_ns();
    primitives_[i]->execute(context, arguments_[i], scratch_[i]);
    trace.events.push_back({.step = static_cast<int>(i), .begin_ns = begin, .end_ns = now_ns()});
  }
}

std::string Engine::implementation(int step) const { return primitives_[static_cast<std::size_t>(step)]->name(); }

std::span<float> Engine::floats(int buffer) {
  const auto index = static_cast<std::size_t>(buffer);
  return {reinterpret_cast<float*>(arena_->data() + placement_.offsets[index]),
          static_cast<std::size_t>(schedule_.buffers[index].bytes) / sizeof(float)};
}

std::span<std::int32_t> Engine::labels(int buffer) {
  const std::span<float> memory = floats(buffer);
  return {reinterpret_cast<std::int32_t*>(memory.data()), memory.size()};
}

std::span<const double> Engine::losses() const {
  const auto index = static_cast<std::size_t>(schedule_.loss);
  return {reinterpret_cast<const double*>(arena_->data() + placement_.offsets[index]),
          static_cast<std::size_t>(schedule_.buffers[index].bytes) / sizeof(double)};
}

}  // namespace orthant::engine
