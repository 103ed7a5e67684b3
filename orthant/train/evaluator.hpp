#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/train/scores.hpp"

#include <functional>
#include <memory>

namespace orthant::train {

struct EvaluatorOptions {
  int threads = 1;
  std::int64_t other_bytes = 0;  ///< memory that others take, such as the arena of training
  engine::ChooseOptions kernels{};
};

/// A network that is run but not trained: running statistics, no dropout. Cut as the plan says.
class Evaluator {
 public:
  /// Collective. Throws CollectiveError if the memory does not suffice. Weights are unset.
  Evaluator(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm, const EvaluatorOptions& options);

  [[nodiscard]] engine::Session& session() { return session_; }
  [[nodiscard]] engine::Engine& engine() { return session_.engine(); }
  /// Takes the weights and running statistics of an engine for the same network and plan.
  void copy_weights(const engine::Engine& from);

  /// Collective. Runs all samples in order, one mini-batch at a time, and calls `visit` after each on all ranks. The
  /// last mini-batch is filled up by repeating its last sample.
  void run(const data::sets::Dataset& dataset, const std::function<void(const EvaluatedBatch&)>& visit);
  /// Collective. The scores of all samples.
  Scores score(const data::sets::Dataset& dataset);

 private:
  void load(const data::sets::Dataset& dataset, const EvaluatedBatch& batch);

  engine::Session session_;
  std::vector<std::byte> room_;  ///< for boxes whose place in memory is not contiguous
};

}  // namespace orthant::train
