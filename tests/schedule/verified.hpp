#pragma once

#include "orthant/schedule/verify.hpp"

#include <gtest/gtest.h>

namespace orthant::schedule {

/// The schedule of one rank, in which nothing may be wrong.
inline Schedule lower_verified(const model::Graph& graph, const plan::Plan& plan, int rank,
                               const LowerOptions& options) {
  Schedule schedule = lower(graph, plan, rank, options);
  EXPECT_EQ(verify(schedule), std::vector<std::string>{}) << "rank " << rank;
  return schedule;
}

}  // namespace orthant::schedule
