#pragma once

#include "orthant/plan/plan.hpp"

#include <optional>
#include <string>

namespace orthant::plan {

/// How a network is to be cut, as a user says it: by a compact grid, by the name of a strategy, or by a whole plan. At
/// most one of these is set. With none, samples are cut where there are enough of them, and space as well otherwise.
struct PlanRequest {
  std::string grid{}, strategy{};
  std::optional<Plan> plan{};
  std::string plan_path{};  ///< where `plan` was read, for messages
  int micro_batches = 0;    ///< 0: what suits the plan
  std::optional<Statistics> statistics{};
};

/// The ranks that the request itself names; 0 if it suits any number.
int ranks_of(const PlanRequest& request);

/// Throws Error if `what` (a plan, a grid, a command) is for another number of ranks than there are.
void check_rank_count(const std::string& what, int wanted, int ranks);

/// The plan that is asked for, verified. Throws Error if it does not fit the graph or the number of ranks.
Plan make_plan(const model::Graph& graph, const PlanRequest& request, int ranks);

}  // namespace orthant::plan
