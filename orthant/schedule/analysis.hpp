#pragma once

#include "orthant/schedule/fusion.hpp"
#include "orthant/schedule/value.hpp"
#include "orthant/tensor/moves.hpp"

namespace orthant::schedule {

/// Samples that go through the network together: who owns, reads and keeps which boxes of their tensors.
struct MicroBatch {
  int index = 0;
  model::Graph graph;                            ///< with the micro-batch's number of samples
  std::int64_t first_sample = 0;                 ///< in the mini-batch
  std::vector<std::vector<plan::Share>> shares;  ///< per node and rank
  std::vector<std::vector<tensor::Box>> stored;  ///< per node and rank: what is kept of its dst
  std::vector<std::vector<tensor::Box>> filled;  ///< per node and rank: what readers want in place
  std::vector<std::vector<bool>> in_place;       ///< per node and source
};

/// What is true for all ranks of a plan: made once, then each rank is lowered from it.
class Analysis {
 public:
  /// Graph and plan must outlive it. Throws Error if the plan does not fit the graph.
  Analysis(const model::Graph& graph, const plan::Plan& plan, bool input_gradient);

  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const plan::NodePlan& planned(int node) const { return at(plan_.nodes, node); }
  [[nodiscard]] bool has_stages() const { return has_stages_; }
  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  /// The unit whose result a node is.
  [[nodiscard]] const Unit& producer(int node) const { return at(units_, at(unit_of_, node)); }
  [[nodiscard]] int reader_count(int node) const { return at(readers_, node); }
  /// A gradient is needed where a parameter lies upstream, or everywhere if the input's is asked for.
  [[nodiscard]] bool needs_gradient(int node) const { return at(needs_gradient_, node); }
  [[nodiscard]] const std::vector<MicroBatch>& micro_batches() const { return micro_batches_; }

  // Who holds and who wants which boxes of a tensor of a micro-batch.

  /// What a unit reads of a source.
  [[nodiscard]] tensor::Redistribution reading(const MicroBatch& micro_batch, const Unit& unit,
                                               std::size_t source) const;
  /// What all readers want of a node in place.
  [[nodiscard]] tensor::Redistribution filling(const MicroBatch& micro_batch, int node) const;
  /// Those who sum over some of the channels have partial sums of a box that others own.
  [[nodiscard]] tensor::Redistribution partial_sums(const MicroBatch& micro_batch, int node) const;
  /// The output as the loss wants it.
  [[nodiscard]] tensor::Redistribution loss_reading(const MicroBatch& micro_batch) const;
  /// True if every rank has what it reads of the source, and nothing else.
  [[nodiscard]] bool is_local(const MicroBatch& micro_batch, const Unit& unit, std::size_t source) const;
  /// What messages with parts of a unit's source are counted as.
  [[nodiscard]] Kind kind_of(const Unit& unit, std::size_t source) const;
  /// The ranks that have a share of the output.
  [[nodiscard]] std::vector<int> loss_ranks() const;

 private:
  void mark_gradients(bool input_gradient);
  [[nodiscard]] MicroBatch make_micro_batch(int index) const;
  void find_storage(MicroBatch& micro_batch) const;
  [[nodiscard]] bool fits_in_place(const MicroBatch& micro_batch, const Unit& unit, std::size_t source) const;
  [[nodiscard]] bool is_residual(const Unit& unit, std::size_t source) const {
    return source >= at(graph_.nodes, unit.main).srcs.size();
  }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  ///< per node: the unit whose out it is, or -1
  std::vector<int> readers_;  ///< per node: how many
  std::vector<bool> needs_gradient_;
  bool has_stages_ = false;
  std::vector<MicroBatch> micro_batches_;
};

/// The steps of `rank` under the plan that was analysed.
Schedule lower(const Analysis& analysis, int rank, const LowerOptions& options);

}  // namespace orthant::schedule
