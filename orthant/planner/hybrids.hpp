#pragma once

#include "orthant/planner/cut_prices.hpp"

#include <string>
#include <vector>

namespace orthant::planner {

/// A plan that cuts the whole network in one way, as far as that suits its layers: "n64d8h2w2".
struct Hybrid {
  std::string name;
  plan::Plan plan;
};

/// Groups of samples, as many as divide the ranks, with space or filters cut inside each.
std::vector<Hybrid> hybrids(const model::Graph& graph, int ranks);

/// What a plan without stages would take by the prices of its cuts, if half of what gradients take is waited for.
double estimate(const plan::Plan& plan, CutPrices& prices);

}  // namespace orthant::planner
