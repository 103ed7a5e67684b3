#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/arena.hpp"
#include "orthant/engine/shared_memory.hpp"
#include "orthant/engine/trace.hpp"
#include "orthant/kernels/primitive.hpp"
#include "orthant/schedule/schedule.hpp"

#include <atomic>
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

/// Binds a Schedule to memory, kernels and messages, and runs it. The constructor decides and allocates; run() does
/// neither.
class Engine {
 public:
  /// `comm` must outlive the engine and have the ranks the schedule was made for.
  Engine(schedule::Schedule schedule, comm::Comm& comm, const EngineOptions& options);

  /// Collective. One pass over all steps.
  void run(const kernels::Context& context);
  /// The same, with the time of every step recorded.
  void run(const kernels::Context& context, Trace& trace);
  /// Whether updates of the last run on this rank have written numbers that are not finite.
  [[nodiscard]] bool wrote_non_finite() const { return non_finite_; }
  /// Seconds of the last run in which this rank did nothing but wait for messages.
  [[nodiscard]] double waited_seconds() const { return static_cast<double>(waited_ns_) * 1e-9; }

  [[nodiscard]] const schedule::Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const schedule::Placement& placement() const { return placement_; }
  /// What the arena took.
  [[nodiscard]] std::int64_t allocated_bytes() const { return arena_->bytes(); }
  /// The implementation that step i runs on; "start" or "finish" for messages.
  [[nodiscard]] std::string implementation(int step) const;

  /// Copies all of a buffer out of the arena or into it; `items` has as many as the buffer. Parameters are in the
  /// kernels' order: see parameter_order.hpp.
  void read(int buffer, std::span<float> items) const;
  void write(int buffer, std::span<const float> items);
  [[nodiscard]] std::size_t item_count(int buffer) const;
  /// The memory itself, for samples on their way in and predictions on their way out.
  [[nodiscard]] std::span<float> floats(int buffer);
  [[nodiscard]] std::span<const float> floats(int buffer) const;
  [[nodiscard]] std::span<std::int32_t> labels(int buffer);
  /// The loss of the last run: one number per term, then their weighted sum.
  [[nodiscard]] std::span<const double> losses() const { return losses_; }

 private:
  [[nodiscard]] std::byte* address(const schedule::Piece& piece) const;
  [[nodiscard]] comm::Round placed(const schedule::Round& round, int tag) const;
  void bind_messages();
  void connect();
  void execute(std::size_t step, const kernels::Context& context);
  bool poll(std::size_t step);
  /// The context with which messages move along under long kernels, and updates say what they find.
  kernels::Context own_context(kernels::Context context);
  template <class Execute>
  void execute_all(Execute execute_step);
  void add_up_losses();

  schedule::Schedule schedule_;
  comm::Comm& comm_;
  std::vector<std::unique_ptr<kernels::Primitive>> primitives_;  ///< per step; null for messages
  std::vector<std::unique_ptr<comm::Transfer>> transfers_;       ///< per exchange
  schedule::Placement placement_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<SharedMemory> shared_;
  std::vector<std::vector<void*>> arguments_;  ///< per step
  std::vector<void*> scratch_;                 ///< per step
  bool connected_ = false;                     ///< to other ranks: before the first run
  std::vector<double> losses_;
  std::int64_t waited_ns_ = 0;
  std::atomic<bool> non_finite_ = false;
  kernels::Poll poll_;  ///< under long kernels
};

}  // namespace orthant::engine
