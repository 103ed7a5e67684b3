#pragma once

#include "orthant/model/task.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/tensor/moves.hpp"
#include "orthant/tensor/rank_group.hpp"

#include <optional>
#include <vector>

namespace orthant::plan {

/// What one rank does of a node.
struct Share {
  tensor::Box owned;     ///< of dst
  tensor::Box computed;  ///< of dst; more than `owned` where the rank adds up only some of the src channels
  std::vector<std::vector<tensor::Box>> sources;  ///< per source the boxes it reads, side by side in c
};

/// How a node is cut over ranks. Whatever it says of a part depends on the part's coordinates alone, dim by dim, and
/// costs the same at any number of ranks.
class NodeCut {
 public:
  /// The graph must outlive it.
  NodeCut(const Plan& plan, const model::Graph& graph, int node);

  [[nodiscard]] const tensor::Distribution& dst() const { return dst_; }
  [[nodiscard]] Share share(int rank) const;
  /// True if every part reads of its sources what it owns of dst.
  [[nodiscard]] bool is_cellwise() const;
  /// What all parts read of a source.
  [[nodiscard]] tensor::Demand reading(std::size_t source) const;
  /// What all parts compute, of dst.
  [[nodiscard]] tensor::Demand computing() const;

  /// The filters that the part at a c coordinate computes, and the src channels that it sums over.
  struct ChannelCut {
    tensor::Range filters;
    std::vector<tensor::Range> channels;
  };
  /// Only for contractions.
  [[nodiscard]] ChannelCut channel_cut(int coordinate) const;

 private:
  [[nodiscard]] const model::Node& node() const { return graph_->nodes[static_cast<std::size_t>(node_)]; }
  [[nodiscard]] const tensor::Shape& src(std::size_t source) const;
  [[nodiscard]] tensor::Demand summing() const;
  [[nodiscard]] tensor::Range computed(tensor::Dim dim, int coordinate) const;
  [[nodiscard]] tensor::Range read_along(std::size_t source, tensor::Dim dim, int coordinate) const;
  [[nodiscard]] tensor::RangeList channels_read(std::size_t source, int coordinate) const;

  const model::Graph* graph_;
  int node_;
  int channel_parts_;
  model::OpTraits traits_;
  tensor::Distribution dst_;
  /// Of the source, where every rank sums up the cells that it has. Ranks of an earlier pipeline stage do not: they are
  /// done, and all cells move.
  std::optional<tensor::Distribution> summed_;
};

Share share_of(const Plan& plan, const model::Graph& graph, int node, int rank);

/// A rank's part of a parameter: ranges of its first two extents (PyTorch's order), the first of the second ones.
struct Shard {
  std::vector<tensor::Range> first, second;
  bool operator==(const Shard&) const = default;
};

/// The part of `parameter` that `rank` holds; no ranges at all if it takes no part in the node.
Shard shard_of(const Plan& plan, const model::Graph& graph, const model::Parameter& parameter, int rank);
std::int64_t count(const model::Parameter& parameter, const Shard& shard);

/// The ranks that hold the same shard of the node's parameters as `rank`, itself included.
tensor::RankGroup shard_holders(const Plan& plan, const model::Graph& graph, int node, int rank);

/// The ranks whose values enter the same statistics as those of `rank`, and the items of all of them.
struct StatisticsGroup {
  tensor::RankGroup ranks;
  std::int64_t items = 0;        ///< per channel, or per sample and group
  model::SampleGroups groups{};  ///< where statistics are per sample
  std::int64_t statistics = 0;   ///< how many means this rank has a share of
};
StatisticsGroup statistics_group(const Plan& plan, const model::Graph& graph, int node, int rank);

}  // namespace orthant::plan
