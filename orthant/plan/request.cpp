#include "orthant/plan/request.hpp"

#include "orthant/base/error.hpp"
#include "orthant/plan/strategy.hpp"

#include <algorithm>

namespace orthant::plan {
namespace {

Plan cut_as_asked(const model::Graph& graph, const PlanRequest& request, int ranks) {
  if (request.plan) return *request.plan;
  if (!request.grid.empty()) return make_plan(graph, parse_grid(request.grid), request.micro_batches);
  if (!request.strategy.empty()) return make_plan(graph, request.strategy, ranks, request.micro_batches);
  if (ranks == 1) return serial_plan(graph);
  const bool enough_samples = graph.nodes.front().shape.n / std::max(request.micro_batches, 1) >= ranks;
  return make_plan(graph, enough_samples ? "data" : "data+spatial", ranks, request.micro_batches);
}

}  // namespace

int ranks_of(const PlanRequest& request) {
  if (request.plan) return request.plan->ranks;
  return request.grid.empty() ? 0 : total_ranks(parse_grid(request.grid));
}

void check_rank_count(const std::string& what, int wanted, int ranks) {
  if (wanted == ranks) return;
  base::fail(base::Exit::does_not_fit, "{} is for {} rank{}, but there {} {}; use --ranks {}", what, wanted,
             wanted == 1 ? "" : "s", ranks == 1 ? "is" : "are", ranks, wanted);
}

Plan make_plan(const model::Graph& graph, const PlanRequest& request, int ranks) {
  if (const int wanted = ranks_of(request); wanted > 0) {
    check_rank_count(request.plan ? "the plan '" + request.plan_path + "'" : "the grid " + request.grid, wanted, ranks);
  }
  Plan plan = cut_as_asked(graph, request, ranks);
  if (request.micro_batches > 0) plan.micro_batches = request.micro_batches;
  if (request.statistics) {
    for (NodePlan& node : plan.nodes) node.statistics = *request.statistics;
  }
  verify(plan, graph);
  return plan;
}

}  // namespace orthant::plan
