#pragma once

#include "orthant/plan/plan.hpp"

#include <vector>

namespace orthant::plan {

/// What one rank does of a node.
struct Share {
  tensor::Box owned;     ///< of dst
  tensor::Box computed;  ///< of dst; more than `owned` where the rank adds up only some of the src channels
  std::vector<std::vector<tensor::Box>> sources;  ///< per source the boxes it reads, side by side in c
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

/// The ranks that hold the same shard of the node's parameters as `rank`, itself included, in rising order.
std::vector<int> shard_holders(const Plan& plan, const model::Graph& graph, int node, int rank);

/// The ranks whose values enter the same batch statistics as those of `rank`, and the pixels of all of them.
struct StatisticsGroup {
  std::vector<int> ranks;
  std::int64_t pixels = 0;
};
StatisticsGroup statistics_group(const Plan& plan, const model::Graph& graph, int node, int rank);

}  // namespace orthant::plan
