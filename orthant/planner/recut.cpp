#include "orthant/base/error.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/planner/hybrids.hpp"
#include "orthant/planner/planner.hpp"
#include "orthant/planner/trials.hpp"

#include <algorithm>
#include <array>

namespace orthant::planner {
namespace {

using tensor::Dim;
using tensor::Grid;

/// Grids of as many parts, in which a factor two went from one dim to another.
std::vector<Grid> neighbours_of(const Grid& grid) {
  constexpr std::array dims{Dim::n, Dim::c, Dim::d, Dim::h, Dim::w};
  std::vector<Grid> grids;
  for (const Dim from : dims) {
    for (const Dim to : dims) {
      if (from == to || grid[from] % 2 != 0) continue;
      Grid other = grid;
      other[from] /= 2;
      other[to] *= 2;
      grids.push_back(other);
    }
  }
  return grids;
}

/// The plan with a group of nodes cut in another way; nothing if it cannot be.
std::optional<plan::Plan> with_cut(const model::Graph& graph, const plan::Plan& plan, const std::vector<int>& group,
                                   const Grid& grid) {
  plan::Plan changed = plan;
  for (const int node : group) {
    plan::NodePlan& one = changed.nodes[static_cast<std::size_t>(node)];
    one.grid = grid;
    one.channel_parts = 1;
    one.kernels = {};
  }
  try {
    plan::verify(changed, graph);
  } catch (const base::Error&) {
    return {};
  }
  return changed;
}

std::vector<int> group_of(const model::Graph& graph, int node) {
  for (const std::vector<int>& group : plan::grid_groups(graph))
    if (std::find(group.begin(), group.end(), node) != group.end()) return group;
  return {node};
}

}  // namespace

std::optional<Candidate> cut_otherwise(const model::Graph& graph, const oracle::Profile& profile,
                                       const PlanningOptions& options, const plan::Plan& plan, int node) {
  Trials trials(graph, profile, options);
  CutPrices prices(graph, trials.prices(), trials.network(), options.step.optimizer);
  const std::vector<int> group = group_of(graph, node);
  std::vector<std::pair<double, plan::Plan>> others;
  for (const Grid& grid : neighbours_of(plan.nodes[static_cast<std::size_t>(node)].grid)) {
    auto changed = with_cut(graph, plan, group, grid);
    if (!changed) continue;
    const double seconds = estimate(*changed, prices);
    others.emplace_back(seconds, std::move(*changed));
  }
  if (others.empty()) return {};
  const auto least =
      std::min_element(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return trials.afford("recut", least->second);
}

}  // namespace orthant::planner
