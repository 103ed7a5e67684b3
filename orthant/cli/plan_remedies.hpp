#pragma once

#include "orthant/cli/plan.hpp"

#include <string>
#include <vector>

namespace orthant::cli {

/// What holds a plan back, layer by layer, and what another cut of that layer would change: plans that differ in one
/// place are predicted for it. "conv1: 61 % of the step, mostly halo; h2w2 instead of h4: -18 %".
std::vector<std::string> remedies(const Question& question, const planner::Candidate& candidate);

/// The most ranks that are worth having: with twice as many a step takes at least nine tenths of the time, or nothing
/// can be cut further. By short searches for twice as many again and again; of fewer than were asked for, only half is
/// looked at, and one.
struct UsefulRanks {
  int ranks = 1;
  double seconds = 0;
  std::string strategy;
  std::string limit;  ///< what more would bring
};
/// Starts from the best plan for the ranks that were asked for, and takes what was answered for half and twice as many.
UsefulRanks useful_ranks(const Question& question, const planner::Planned& planned,
                         const std::vector<planner::WhatIf>& what_ifs);

}  // namespace orthant::cli
