#pragma once

#include "orthant/plan/plan.hpp"

#include <vector>

namespace orthant::schedule {

/// Nodes that one kernel computes together: `main`, then a residual sum (after BatchNorm), then an activation.
/// Only the last of them, `out`, has a tensor of its own.
struct Unit {
  int main = 0;
  int add = -1;
  int activation = -1;
  int out = 0;
  std::vector<int> srcs;  ///< nodes read by main; then the residual if there is one
};

/// The graph's units in an order in which each comes after what it reads. Nodes that the plan cuts differently stay
/// apart.
std::vector<Unit> fuse(const model::Graph& graph, const plan::Plan& plan);

/// How many nodes read each node's dst.
std::vector<int> consumer_counts(const model::Graph& graph);

/// The activation a unit ends with; identity if none. A lone Activation op is its own main.
model::Activation activation_of(const model::Graph& graph, const Unit& unit);

}  // namespace orthant::schedule
