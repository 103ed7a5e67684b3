#pragma once

#include "orthant/plan/compact_grid.hpp"
#include "orthant/plan/fit.hpp"

#include <vector>

namespace orthant::plan {

/// How one node is cut; see NodePlan.
struct Cut {
  tensor::Grid grid;
  int channel_parts = 1;
};

/// One cut per node: the asked one where it suits the node and those it is grouped with, else the next best.
std::vector<Cut> choose_cuts(const model::Graph& graph, const CompactGrid& asked, const Fit& fit);

}  // namespace orthant::plan
