#pragma once

#include "orthant/cli/plan.hpp"

#include <string>
#include <vector>

namespace orthant::cli {

/// What holds a plan back, layer by layer, and what another cut of that layer would change: plans that differ in one
/// place are predicted for it. "conv1: 61 % of the step, mostly halo; h2w2 instead of h4: -18 %".
std::vector<std::string> remedies(const Question& question, const planner::Candidate& candidate);

/// The most ranks that are worth having, by doubling: with twice as many a step takes at least nine
/// tenths of the time, or nothing can be cut further. By short searches.
struct UsefulRanks {
  int ranks = 1;
  double seconds = 0;
  std::string strategy;
  std::string limit;  ///< what twice as many would bring
};
/// Starts from the best plan for the ranks that were asked for, and for twice as many if that was answered.
UsefulRanks useful_ranks(const Question& question, const planner::Candidate& best,
                         const std::vector<planner::WhatIf>& what_ifs);

}  // namespace orthant::cli
