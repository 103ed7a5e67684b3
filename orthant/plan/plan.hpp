#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/tensor/distribution.hpp"

#include <string>
#include <vector>

namespace orthant::plan {

/// How one node's dst is cut over ranks.
struct NodePlan {
  std::string node;
  tensor::Grid grid;
  bool operator==(const NodePlan&) const = default;
};

/// Who owns what: one entry per node of the graph, in its order.
struct Plan {
  int ranks = 1;
  std::vector<NodePlan> nodes;
  bool operator==(const Plan&) const = default;
};

/// Everything on one rank.
Plan serial_plan(const model::Graph& graph);

/// Throws Error if the plan does not fit the graph: unknown or missing nodes, a grid that is not `ranks` parts.
void verify(const Plan& plan, const model::Graph& graph);

/// The distribution of node i's dst.
tensor::Distribution distribution(const Plan& plan, const model::Graph& graph, int node);

/// JSON with a format version; round-trips.
std::string to_json(const Plan& plan);
Plan from_json(const std::string& text, const std::string& origin);

}  // namespace orthant::plan
