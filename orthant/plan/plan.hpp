#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/task.hpp"
#include "orthant/tensor/distribution.hpp"

#include <string>
#include <vector>

namespace orthant::plan {

/// Which ranks' values a batch normalisation's mean and variance cover: this rank's, those of the same samples, all.
enum class Statistics { local, spatial, global };

/// How a convolution is computed in one pass, on all ranks and for all micro-batches.
struct KernelChoice {
  model::Algorithm algorithm = model::Algorithm::automatic;
  /// What was measured on the rank with the most work: the time of one call and its scratch memory. 0: not measured.
  double seconds = 0;
  std::int64_t scratch_bytes = 0;
  /// Weights that the kernel wants in another form (Winograd's transform, oneDNN's reorder) are brought into it once,
  /// in a buffer of their own, for all micro-batches. Otherwise every call does it, block by block, and takes less
  /// memory.
  bool prepare_weights = false;
  bool operator==(const KernelChoice&) const = default;
};

/// The choices of one convolution, by the pass of the task (model::Pass) and not by that of the network: going forward,
/// a transposed convolution runs a backward_data task, and going backward a forward task.
struct KernelChoices {
  KernelChoice forward{}, backward_data{}, backward_weights{};
  [[nodiscard]] KernelChoice& operator[](model::Pass pass);
  [[nodiscard]] const KernelChoice& operator[](model::Pass pass) const;
  bool operator==(const KernelChoices&) const = default;
};

/// How one node's dst is cut over ranks.
struct NodePlan {
  std::string node;
  tensor::Grid grid;
  int first_rank = 0;  ///< the grid's parts belong to the ranks from this one on; others own nothing of the node
  /// Convolutions and dense layers: into how many parts the sum over src channels is cut; divides grid.c.
  /// 1 is stationary-y, grid.c is stationary-x, in between is stationary-w (Dryden et al., SC'19).
  int channel_parts = 1;
  int stage = 0;  ///< of the pipeline
  Statistics statistics = Statistics::global;
  KernelChoices kernels{};  ///< of convolutions
  bool operator==(const NodePlan&) const = default;
};

/// Who owns what and computes what: one entry per node of the graph, in its order.
struct Plan {
  int ranks = 1;
  int micro_batches = 1;  ///< the mini-batch goes through the network in so many pieces
  std::vector<NodePlan> nodes;
  bool operator==(const Plan&) const = default;
};

/// Everything on one rank.
Plan serial_plan(const model::Graph& graph);

/// Throws Error with the reason and the nearest that can run if the plan does not fit the graph: other nodes, more
/// parts than ranks, cells or samples, ranks without work, cuts that an op cannot have, stages that read later ones.
void verify(const Plan& plan, const model::Graph& graph);
/// The part of it that is about the number of micro-batches.
void check_micro_batches(const model::Graph& graph, int micro_batches);

/// The distribution of node i's dst. Channels of grouped convolutions are cut between groups, those of a flattened
/// tensor between channels of its source.
tensor::Distribution distribution(const Plan& plan, const model::Graph& graph, int node);
/// That of the tensor the loss works on: the output's, with all channels of a pixel on one rank.
tensor::Distribution loss_distribution(const Plan& plan, const model::Graph& graph);

/// A table for people; runs of nodes that are cut alike share a line.
std::string to_text(const Plan& plan);

/// JSON with a format version, without what is default; round-trips.
std::string to_json(const Plan& plan);
Plan from_json(const std::string& text, const std::string& origin);

}  // namespace orthant::plan
