#pragma once

#include "orthant/plan/plan.hpp"

#include <vector>

namespace orthant::train {

/// The ranks that between them hold every item of the node's parameters once: of all holders of a shard, the first
/// one. There are as many as channel parts, whatever the number of ranks.
std::vector<int> speakers_of(const plan::Plan& plan, const model::Graph& graph, int node);

/// True if `rank` is one of them.
bool speaks(const plan::Plan& plan, const model::Graph& graph, int node, int rank);

}  // namespace orthant::train
