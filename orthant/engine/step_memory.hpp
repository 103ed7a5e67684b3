#pragma once

#include "orthant/engine/arena.hpp"
#include "orthant/kernels/primitive.hpp"
#include "orthant/schedule/schedule.hpp"

#include <functional>
#include <span>
#include <vector>

namespace orthant::engine {

/// Bytes that StepMemory takes for the arguments of a step.
std::int64_t step_bytes(const schedule::Schedule& schedule, const schedule::Step& step);

/// Memory for the arguments of one step alone, filled with random numbers below 1/8: to run and time what a step could
/// run on.
class StepMemory {
 public:
  StepMemory(const schedule::Schedule& schedule, const schedule::Step& step);
  [[nodiscard]] std::span<void* const> arguments() const { return arguments_; }

 private:
  Arena arena_;
  std::vector<void*> arguments_;
};

/// Times a primitive: `seconds` long or so many runs, but at least two after one that warms up.
struct Timing {
  double seconds = 0.015;
  int runs = 20;
};
double best_seconds(kernels::Primitive& primitive, std::span<void* const> arguments, const Timing& timing);

/// The shortest of the runs that fit into a few milliseconds, or one run that takes longer.
double shortest_run(const std::function<void()>& run);

/// The steady clock, in seconds.
double clock_seconds();

}  // namespace orthant::engine
