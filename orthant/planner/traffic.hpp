#pragma once

#include "orthant/oracle/profile.hpp"
#include "orthant/plan/machines.hpp"
#include "orthant/tensor/moves.hpp"

namespace orthant::planner {

/// Where ranks are, and what messages between them cost.
struct Network {
  const oracle::Profile& profile;
  plan::Machines machines;
  int ranks_per_machine = 1;
};

/// What one rank gets from others, or gives to them.
struct Traffic {
  double inside_bytes = 0, between_bytes = 0;
  double inside_messages = 0, between_messages = 0;
};

/// What a rank in the middle of those that want something gets. Where fewer hold it than want it, holders have to give
/// more than that, and this is what counts.
Traffic traffic_of(const tensor::Redistribution& boxes, const Network& network);

/// Until it has arrived, if all ranks of a machine do the same.
double seconds_of(const Traffic& traffic, const Network& network);

/// Ranks that have the same channels of a tensor, and how many of them share a machine.
struct Members {
  int ranks = 1, inside = 1;
};
Members members_of(const tensor::Grid& grid, const Network& network);

/// A sum of a few numbers that all members want.
double sum_seconds(const Members& members, const Network& network);

/// The sum of `bytes` that each member has, scattered, and the gathering of as many: gradients, then weights.
double reduction_seconds(double bytes, const Members& members, const Network& network);

}  // namespace orthant::planner
