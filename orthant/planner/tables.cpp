#include "orthant/planner/tables.hpp"

#include "orthant/plan/fit.hpp"

#include <algorithm>
#include <map>

namespace orthant::planner {
namespace {

using tensor::Grid;

double weight(const Priced& priced, double exposed) { return priced.seconds + exposed * priced.reduction_seconds; }

void add(Cost& cost, const Priced& priced, double exposed) {
  cost.seconds += weight(priced, exposed);
  cost.bytes += priced.bytes;
}

}  // namespace

Tables::Tables(std::vector<std::vector<int>> groups, std::vector<std::vector<Grid>> cuts, CutPrices& prices)
    : groups_(std::move(groups)), cuts_(std::move(cuts)), group_of_(prices.graph().nodes.size()), prices_(&prices) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const int node : groups_[group]) group_of_[static_cast<std::size_t>(node)] = static_cast<int>(group);
  }
}

/// The cheapest way to cut the sum.
const Priced& Tables::layer(int node, std::size_t source, const Grid& from, const Grid& grid, double exposed) const {
  const std::vector<Priced>& ways = prices_->reading(node, source, from, grid);
  return *std::min_element(ways.begin(), ways.end(),
                           [&](const Priced& a, const Priced& b) { return weight(a, exposed) < weight(b, exposed); });
}

Problem Tables::problem(double exposed) const {
  Problem problem;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<Cost> costs;
    for (const Grid& grid : cuts_[group]) {
      Cost cost;
      for (const int node : groups_[group]) add(cost, prices_->own(node, grid), exposed);
      costs.push_back(cost);
    }
    problem.variables.push_back(std::move(costs));
  }
  add_readings(problem, exposed);
  return problem;
}

void Tables::add_readings(Problem& problem, double exposed) const {
  std::map<std::pair<int, int>, std::size_t> place_of;
  for (int node = 0; node < static_cast<int>(group_of_.size()); ++node) {
    const int to = group_of_[static_cast<std::size_t>(node)];
    const std::vector<Grid>& grids = cuts_[static_cast<std::size_t>(to)];
    const auto& srcs = prices_->graph().nodes[static_cast<std::size_t>(node)].srcs;
    for (std::size_t source = 0; source < srcs.size(); ++source) {
      const int from = group_of_[static_cast<std::size_t>(srcs[source])];
      if (from == to) {
        auto& own = problem.variables[static_cast<std::size_t>(to)];
        for (std::size_t i = 0; i < grids.size(); ++i)
          add(own[i], layer(node, source, grids[i], grids[i], exposed), exposed);
        continue;
      }
      const std::vector<Grid>& sources = cuts_[static_cast<std::size_t>(from)];
      const auto [place, is_new] = place_of.emplace(std::pair(from, to), problem.pairs.size());
      if (is_new)
        problem.pairs.push_back({.a = from, .b = to, .costs = std::vector<Cost>(sources.size() * grids.size())});
      auto cost = problem.pairs[place->second].costs.begin();
      for (const Grid& held : sources) {
        for (const Grid& grid : grids) add(*cost++, layer(node, source, held, grid, exposed), exposed);
      }
    }
  }
}

plan::Plan Tables::plan(const std::vector<int>& choices, int ranks, double exposed) const {
  plan::Plan plan = plan::serial_plan(prices_->graph());
  plan.ranks = ranks;
  const auto grid_of = [&](int node) -> const Grid& {
    const auto group = static_cast<std::size_t>(group_of_[static_cast<std::size_t>(node)]);
    return cuts_[group][static_cast<std::size_t>(choices[group])];
  };
  for (int node = 0; node < static_cast<int>(plan.nodes.size()); ++node) {
    plan::NodePlan& entry = plan.nodes[static_cast<std::size_t>(node)];
    entry.grid = grid_of(node);
    const model::Node& here = prices_->graph().nodes[static_cast<std::size_t>(node)];
    if (plan::computes(here.op))
      entry.channel_parts = layer(node, 0, grid_of(here.srcs.front()), entry.grid, exposed).channel_parts;
  }
  return plan;
}

std::optional<std::vector<int>> Tables::choices_of(const plan::Plan& plan) const {
  std::vector<int> choices;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const plan::NodePlan& entry = plan.nodes[static_cast<std::size_t>(groups_[group].front())];
    const auto found = std::find(cuts_[group].begin(), cuts_[group].end(), entry.grid);
    if (found == cuts_[group].end() || entry.first_rank != 0) return {};
    choices.push_back(static_cast<int>(found - cuts_[group].begin()));
  }
  return choices;
}

}  // namespace orthant::planner
