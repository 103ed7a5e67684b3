#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/plan/plan.hpp"

#include <string>
#include <vector>

namespace orthant::cli {

/// A step that is predicted and measured.
struct OracleCase {
  std::string model, input;
  std::int64_t mini_batch = 1;
  std::string strategy;  ///< "serial", the name of a strategy, "mixed" or "auto"
  int ranks = 1;
};

/// CosmoFlow, 3-D U-Net, ResNet-50 and VGG-16, serial and under every strategy that cuts over so many ranks.
std::vector<OracleCase> oracle_cases(int ranks);

model::Graph load(const OracleCase& one);
/// Of all but "auto". "mixed" cuts space in the first half of the network and filters in the second.
plan::Plan plan_of(const OracleCase& one, const model::Graph& graph);

}  // namespace orthant::cli
