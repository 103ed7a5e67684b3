#pragma once

#include "orthant/engine/arena.hpp"
#include "orthant/engine/parameter_order.hpp"
#include "orthant/engine/trace.hpp"
#include "orthant/kernels/primitive.hpp"
#include "orthant/schedule/schedule.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace orthant::engine {

struct EngineOptions {
  int threads = 1;
  /// Called with the arena's size before it is allocated; may throw to refuse it.
  std::function<void(const schedule::Placement&)> before_allocation{};
};

/// Binds a Schedule to memory and kernels, and runs it. The constructor decides and allocates; run() does neither.
class Engine {
 public:
  Engine(schedule::Schedule schedule, const EngineOptions& options);

  /// One pass over all steps.
  void run(const kernels::Context& context);
  /// The same, with the time of every step recorded.
  void run(const kernels::Context& context, Trace& trace);

  [[nodiscard]] const schedule::Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const schedule::Placement& placement() const { return placement_; }
  /// What the arena took.
  [[nodiscard]] std::int64_t allocated_bytes() const { return arena_->bytes(); }
  /// The implementation that step i runs on.
  [[nodiscard]] std::string implementation(int step) const;

  /// Memory of a buffer. Parameters are in the kernels' order: see parameter_order.hpp.
  [[nodiscard]] std::span<float> floats(int buffer);
  [[nodiscard]] std::span<std::int32_t> labels(int buffer);
  /// The loss of the last run: one number per term, then their weighted sum.
  [[nodiscard]] std::span<const double> losses() const;

 private:
  schedule::Schedule schedule_;
  std::vector<std::unique_ptr<kernels::Primitive>> primitives_;
  schedule::Placement placement_;
  std::unique_ptr<Arena> arena_;
  std::vector<std::vector<void*>> arguments_;  ///< per step
  std::vector<void*> scratch_;                 ///< per step
};

}  // namespace orthant::engine
