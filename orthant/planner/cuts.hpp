#pragma once

#include "orthant/planner/cut_prices.hpp"

#include <span>

namespace orthant::planner {

/// All grids for `ranks` parts, and those for a divisor of it with at most two dims cut. Where there are very many,
/// only those that cut few dims.
std::vector<tensor::Grid> grids_for(const model::Graph& graph, int ranks);

struct CutLimits {
  std::size_t fast = 10;    ///< of a group: those that are fastest by themselves
  std::size_t small = 4;    ///< those that need least memory
  std::size_t shared = 12;  ///< those that suit the whole network best, so that neighbours can be cut alike
};

/// The cuts that are worth trying, per group of nodes that are cut alike. Those of the given plans are among them,
/// where plans cut all nodes of a group alike and without stages.
std::vector<std::vector<tensor::Grid>> candidate_cuts(const std::vector<std::vector<int>>& groups, int ranks,
                                                      std::span<const plan::Plan> plans, CutPrices& prices,
                                                      const CutLimits& limits);

}  // namespace orthant::planner
