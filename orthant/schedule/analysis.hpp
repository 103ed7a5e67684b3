#pragma once

#include "orthant/schedule/fusion.hpp"
#include "orthant/schedule/value.hpp"
#include "orthant/tensor/moves.hpp"

#include <memory>

namespace orthant::schedule {

/// Where the tensors of so many samples lie: who owns, reads and keeps which boxes. It holds no list of ranks; what it
/// says of one is computed from the rank's coordinates.
struct Geometry {
  /// A source of a node that it reads in the memory of the source.
  struct Reader {
    int node = 0;
    std::size_t source = 0;
  };

  Geometry(const model::Graph& whole, const plan::Plan& plan, std::int64_t samples);
  Geometry(const Geometry&) = delete;
  Geometry& operator=(const Geometry&) = delete;

  model::Graph graph;               ///< with this number of samples
  std::vector<plan::NodeCut> cuts;  ///< per node
  /// Per node that is the main one of a unit, and source, unless the node is cellwise.
  std::vector<std::vector<tensor::DemandTable>> reads;
  std::vector<std::vector<bool>> in_place;   ///< per node and source
  std::vector<std::vector<Reader>> readers;  ///< per node: those that read it in place
  tensor::Distribution loss;                 ///< of the output as the loss wants it
};

/// Samples that go through the network together.
struct MicroBatch {
  int index = 0;
  std::int64_t first_sample = 0;  ///< in the mini-batch
  const Geometry* geometry = nullptr;
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

  // Who holds and who wants which boxes of a tensor. The geometry must outlive what is returned.

  /// What a unit reads of a source.
  [[nodiscard]] tensor::Redistribution reading(const Geometry& geometry, const Unit& unit, std::size_t source) const;
  /// What all readers want of a node in place.
  [[nodiscard]] static tensor::Redistribution filling(const Geometry& geometry, int node);
  /// Those who sum over some of the channels have partial sums of a box that others own.
  [[nodiscard]] static tensor::Redistribution partial_sums(const Geometry& geometry, int node);
  /// The maxima over the cells of every part of a node's source, side by side as model::PeaksTask writes them, for
  /// those who own the node's dst.
  [[nodiscard]] static tensor::Redistribution peaks(const Geometry& geometry, int node);
  /// The output as the loss wants it.
  [[nodiscard]] static tensor::Redistribution loss_reading(const Geometry& geometry);
  /// What a rank keeps of a node's dst: what it owns and, around it, what readers want in place.
  [[nodiscard]] static tensor::Box stored_box(const Geometry& geometry, int node, int rank);
  /// What messages with parts of a unit's source are counted as.
  [[nodiscard]] Kind kind_of(const Unit& unit, std::size_t source) const;
  /// The ranks that have a share of the output.
  [[nodiscard]] tensor::RankGroup loss_ranks() const;

 private:
  void mark_gradients(bool input_gradient);
  void add_micro_batches();
  void find_storage(Geometry& geometry) const;
  [[nodiscard]] bool fits_in_place(const Geometry& geometry, const Unit& unit, std::size_t source) const;
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
  std::vector<std::unique_ptr<Geometry>> geometries_;  ///< at most two: micro-batches differ by one sample at most
  std::vector<MicroBatch> micro_batches_;
};

/// The steps of `rank` under the plan that was analysed.
Schedule lower(const Analysis& analysis, int rank, const LowerOptions& options);

}  // namespace orthant::schedule
