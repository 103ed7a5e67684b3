#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/plan/plan.hpp"

namespace orthant::train {

/// A network, how it is cut, and the ranks that run it.
struct Job {
  const model::Graph& graph;
  const plan::Plan& plan;
  comm::Comm& comm;
};

}  // namespace orthant::train
