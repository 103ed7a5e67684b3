#pragma once

#include "orthant/engine/arena.hpp"
#include "orthant/kernels/primitive.hpp"
#include "orthant/schedule/schedule.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orthant::calibrate {

/// One way to compute a step.
struct Way {
  model::Task task;  ///< with its algorithm, if it is a convolution
  std::unique_ptr<kernels::Primitive> primitive;
};

/// A step of a schedule that computes, and all ways to do so; the first is the one that the schedule names, or the
/// rule's. Convolutions on prepared weights have one.
struct ReplayStep {
  int step = 0;
  std::vector<Way> ways;
};

/// The computing steps of one rank's schedule, bound to an arena that is laid out as the engine lays it out. Run in
/// their order they find the caches as in a training step, although no message moves: what they take here is what they
/// take there.
class Replay {
 public:
  /// `all_ways`: convolutions also have the algorithms that the schedule does not name.
  Replay(const schedule::Schedule& schedule, int threads, bool all_ways);

  [[nodiscard]] const std::vector<ReplayStep>& steps() const { return steps_; }
  /// Runs one of the steps in one of its ways.
  void execute(std::size_t step, std::size_t way);

  /// What the memory of a replay takes, scratch memory that is not known yet left out.
  static std::int64_t bytes(const schedule::Schedule& schedule);

 private:
  void make_ways(const schedule::Schedule& schedule, int threads, bool all_ways);
  void fill(const schedule::Schedule& schedule);
  [[nodiscard]] std::byte* address(const schedule::Schedule& schedule, int buffer) const;

  std::vector<ReplayStep> steps_;
  schedule::Placement placement_;
  std::vector<std::int64_t> kept_offsets_;  ///< per buffer: where it lies in `kept_` if another rank keeps it
  std::unique_ptr<engine::Arena> arena_, kept_, scratch_;
  std::vector<std::vector<void*>> arguments_;  ///< per entry of steps_
};

}  // namespace orthant::calibrate
