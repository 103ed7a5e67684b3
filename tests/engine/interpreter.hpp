#pragma once

#include "orthant/schedule/schedule.hpp"
#include "tests/support/reference.hpp"

namespace orthant::test {

/// Runs the schedule of one rank in double with the reference definition of every task. Each buffer has memory of its
/// own; those that are pieces of another are copied into it and back where a step takes the whole.
class Interpreter {
 public:
  explicit Interpreter(schedule::Schedule schedule);

  [[nodiscard]] const schedule::Schedule& schedule() const { return schedule_; }
  [[nodiscard]] Numbers& buffer(int index) { return buffers_.at(static_cast<std::size_t>(index)); }

  /// All steps, from the present contents of the persistent buffers.
  void run(const kernels::Context& context);
  /// The loss that the forward steps give; all buffers keep their contents.
  double loss(const kernels::Context& context);

 private:
  void execute(const schedule::Step& step, const kernels::Context& context);
  void gather_pieces(int whole);
  void scatter_pieces(int whole);

  schedule::Schedule schedule_;
  std::vector<Numbers> buffers_;
};

}  // namespace orthant::test
