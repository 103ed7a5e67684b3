#pragma once

#include "orthant/oracle/prices.hpp"
#include "orthant/plan/share.hpp"

namespace orthant::planner {

/// Seconds that kernels take for one node on one rank.
struct LocalWork {
  double forward = 0, backward_data = 0, backward_weights = 0;
};

/// What a rank computes of a node: the boxes of its share. `fused` says that the node's forward rides on another one's
/// kernel, `passes_back` that the gradient of its source is wanted.
struct LocalNode {
  const model::Graph& graph;
  int node = 0;
  const plan::Share& share;
  bool fused = false;
  bool passes_back = true;
};

/// The tasks are those that the schedule would have, but for where their arguments lie.
LocalWork local_work(const LocalNode& local, const oracle::Prices& prices);

}  // namespace orthant::planner
