#pragma once

#include "orthant/engine/choose.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/plan/plan.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace orthant::engine {

struct SessionOptions {
  schedule::LowerOptions lowering{};  ///< but for what the machines say: `needs`, `machines`, `shares_memory`
  int threads = 1;                    ///< of this rank
  ChooseOptions kernels{};            ///< for the choices that the plan leaves open; its `threads` are not looked at
  std::int64_t other_bytes = 0;       ///< memory that must be available besides the arena
  /// Called before the arena is allocated, with its size; may throw to refuse it.
  std::function<void(const schedule::Placement&)> before_allocation = [](const schedule::Placement&) {};
};

/// A network that is ready to run on the ranks of a job: graph and plan, the kernels chosen, the schedule of this rank,
/// and the engine bound to it.
class Session {
 public:
  /// Collective. Throws CollectiveError if the plan does not fit the graph or cannot be followed, or if the memory does
  /// not suffice. `comm` must outlive the session. Weights are unset.
  Session(model::Graph graph, const plan::Plan& plan, comm::Comm& comm, const SessionOptions& options);

  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  /// The plan as it is run: with an algorithm for every convolution.
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] comm::Comm& comm() const { return *comm_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] const schedule::Schedule& schedule() const { return engine_->schedule(); }

  /// Gives every parameter its starting value, which depends on the seed and the parameter alone.
  void initialise_weights(std::uint64_t seed);
  /// Sets this rank's shard of a parameter, one of the schedule's. `whole` is all of it, in the order of files.
  void set_parameter(const schedule::ParameterBuffers& buffers, std::span<const float> whole);

 private:
  model::Graph graph_;
  comm::Comm* comm_;
  plan::Plan plan_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace orthant::engine
