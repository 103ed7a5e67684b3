#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/pieces.hpp"
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
  /// How the convolution is divided; then `algorithm` is that of the first piece, and seconds and scratch_bytes are
  /// those of all pieces together. Empty: it is not.
  std::vector<model::ConvPiece> pieces{};
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

/// How the ranks of a group come to a result that all of them contribute to.
enum class Form {
  direct,     ///< every rank sends to every other: one round
  recursive,  ///< halving and doubling: as many rounds as the number of ranks has factors
  ring,       ///< each rank sends to the next, in as many rounds as there are others; only for buckets
  tree,       ///< most ranks hand over what they have to one of a few and get the result from it; only for sums
  mpi         ///< the collectives of MPI, whose sums have the order that the library chooses
};
const char* name_of(Form form);

/// The form of the exchanges of one sort: direct in small groups, another one in larger ones.
struct GroupForm {
  Form form = Form::recursive;
  int direct_up_to = 4;  ///< ranks
  /// The form for a group of so many ranks.
  [[nodiscard]] Form of(int ranks) const { return ranks <= direct_up_to ? Form::direct : form; }
  bool operator==(const GroupForm&) const = default;
};

struct ExchangeForms {
  GroupForm sums{.direct_up_to = 8};  ///< statistics and losses: few numbers that every rank wants at once
  GroupForm buckets{};  ///< gradients, whose sum is scattered over the holders, and weights, which are gathered
  /// Tensors that are gathered on every rank of a group, and sums of tensors that are scattered over it.
  GroupForm gathers{.direct_up_to = 8};
  /// First among the ranks of each machine, then among those of all machines that have the same place on theirs.
  bool two_levels = true;
  /// Machines with more ranks count as several: a way to try on one machine what happens between many. 0: any number.
  int most_ranks_per_machine = 0;
  bool operator==(const ExchangeForms&) const = default;
};

/// Who owns what and computes what: one entry per node of the graph, in its order.
struct Plan {
  int ranks = 1;
  int micro_batches = 1;  ///< the mini-batch goes through the network in so many pieces
  ExchangeForms exchanges{};
  /// The largest of algorithms that open choices are made among. A choice may name one with larger errors.
  model::ErrorClass error = model::ErrorClass::exact;
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
