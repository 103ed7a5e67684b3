#pragma once

#include "orthant/model/graph.hpp"

#include <vector>

namespace orthant::plan {

/// Groups of nodes that should be cut alike, so that nothing moves between them: a layer with the cellwise ops behind
/// it, joined by residual sums. Each in rising order, sorted by their first nodes.
std::vector<std::vector<int>> grid_groups(const model::Graph& graph);

/// Whether the network may be cut before each node into stages: not inside a layer and the ops fused with it, and not
/// between the input and the first layer that computes.
std::vector<bool> stage_borders(const model::Graph& graph);

}  // namespace orthant::plan
