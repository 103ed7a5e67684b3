#include "orthant/planner/cuts.hpp"

#include "orthant/plan/fit.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace orthant::planner {
namespace {

using tensor::Dim;
using tensor::Grid;

std::vector<int> divisors_of(int number) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) divisors.push_back(divisor);
  return divisors;
}

/// Adds all grids of so many parts that cut at most `most` of the dims from `dim` on.
void add_grids(std::span<const Dim> dims, const tensor::Shape& limits, int parts, int most, Grid grid,
               std::vector<Grid>& grids) {
  if (parts == 1) return grids.push_back(grid);
  if (dims.empty() || most == 0) return;
  for (const int count : divisors_of(parts)) {
    if (count > limits[dims.front()]) break;
    grid[dims.front()] = count;
    add_grids(dims.subspan(1), limits, parts / count, count > 1 ? most - 1 : most, grid, grids);
  }
}

/// No dim of the network is larger.
tensor::Shape largest_shape(const model::Graph& graph) {
  tensor::Shape largest{1, 1, 1, 1, 1};
  for (const model::Node& node : graph.nodes) {
    for (const Dim dim : tensor::all_dims) largest[dim] = std::max(largest[dim], node.shape[dim]);
  }
  return largest;
}

/// One grid for one group: what it takes alone, if neighbours are cut alike.
struct Scored {
  Grid grid;
  double seconds = 0, bytes = 0;
};

class Chooser {
 public:
  Chooser(const std::vector<std::vector<int>>& groups, CutPrices& prices, const CutLimits& limits)
      : groups_(groups), prices_(prices), limits_(limits), fit_(prices.graph(), prices.graph().nodes.front().shape.n) {}

  std::vector<std::vector<Grid>> choose(const std::vector<Grid>& grids) {
    std::vector<std::vector<Scored>> scores(groups_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      for (const Grid& grid : grids)
        if (suits(groups_[group], grid)) scores[group].push_back(score(groups_[group], grid));
    }
    const std::vector<Grid> shared = best_for_all(grids, scores);
    std::vector<std::vector<Grid>> chosen;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      chosen.push_back(best_of(scores[group]));
      for (const Grid& grid : shared)
        if (suits(groups_[group], grid)) add(chosen.back(), grid);
    }
    return chosen;
  }

  static void add(std::vector<Grid>& grids, const Grid& grid) {
    if (std::find(grids.begin(), grids.end(), grid) == grids.end()) grids.push_back(grid);
  }

 private:
  [[nodiscard]] bool suits(const std::vector<int>& group, const Grid& grid) {
    return std::all_of(group.begin(), group.end(), [&](int node) { return suits(node, grid); });
  }

  /// Dims are judged by themselves, and many grids have parts along a dim in common.
  [[nodiscard]] bool suits(int node, const Grid& grid) {
    return std::all_of(tensor::all_dims.begin(), tensor::all_dims.end(), [&](Dim dim) {
      if (grid[dim] == 1) return true;
      const auto [known, is_new] = suited_.try_emplace(std::tuple(node, dim, grid[dim]));
      if (is_new) {
        Grid alone;
        alone[dim] = grid[dim];
        known->second = !fit_.misfit(node, alone).has_value();
      }
      return known->second;
    });
  }

  [[nodiscard]] Scored score(const std::vector<int>& group, const Grid& grid) {
    // About half of what is reduced is waited for, as a guess.
    const auto weight = [](const Priced& priced) { return priced.seconds + 0.5 * priced.reduction_seconds; };
    Scored scored{.grid = grid};
    const auto add_priced = [&](const Priced& priced) {
      scored.seconds += weight(priced);
      scored.bytes += priced.bytes;
    };
    for (const int node : group) {
      add_priced(prices_.own(node, grid));
      const auto& srcs = prices_.graph().nodes[static_cast<std::size_t>(node)].srcs;
      for (std::size_t i = 0; i < srcs.size(); ++i) {
        const bool alike = suits(srcs[i], grid);
        const std::vector<Priced>& ways = prices_.reading(node, i, alike ? std::optional(grid) : std::nullopt, grid);
        add_priced(*std::min_element(ways.begin(), ways.end(),
                                     [&](const Priced& a, const Priced& b) { return weight(a) < weight(b); }));
      }
    }
    return scored;
  }

  /// The fastest and the smallest, in this order.
  [[nodiscard]] std::vector<Grid> best_of(std::vector<Scored> scores) const {
    std::vector<Grid> best;
    const auto take = [&](std::size_t count, auto before) {
      std::stable_sort(scores.begin(), scores.end(), before);
      for (std::size_t i = 0; i < std::min(count, scores.size()); ++i) add(best, scores[i].grid);
    };
    take(limits_.fast, [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
    take(limits_.small, [](const Scored& a, const Scored& b) { return a.bytes < b.bytes; });
    return best;
  }

  /// Those of least time if all groups were cut alike; one that a grid does not suit takes twice its best time.
  [[nodiscard]] std::vector<Grid> best_for_all(const std::vector<Grid>& grids,
                                               const std::vector<std::vector<Scored>>& scores) const {
    std::vector<double> seconds(grids.size(), 0.0);
    for (const std::vector<Scored>& group : scores) {
      const auto best = std::min_element(group.begin(), group.end(),
                                         [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
      auto next = group.begin();  // the same order as `grids`
      for (std::size_t i = 0; i < grids.size(); ++i) {
        const bool suited = next != group.end() && next->grid == grids[i];
        seconds[i] += suited ? next->seconds : 2 * best->seconds;
        if (suited) ++next;
      }
    }
    std::vector<std::size_t> order(grids.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] < seconds[b]; });
    std::vector<Grid> best;
    for (std::size_t i = 0; i < std::min(limits_.shared, order.size()); ++i) best.push_back(grids[order[i]]);
    return best;
  }

  const std::vector<std::vector<int>>& groups_;
  CutPrices& prices_;
  CutLimits limits_;
  plan::Fit fit_;
  std::map<std::tuple<int, Dim, int>, bool> suited_;
};

/// The grid of a plan for a group; nothing if it cuts its nodes in different ways, or has stages.
std::optional<Grid> grid_in(const plan::Plan& plan, const std::vector<int>& group) {
  const plan::NodePlan& first = plan.nodes[static_cast<std::size_t>(group.front())];
  const bool usual = std::all_of(group.begin(), group.end(), [&](int node) {
    const plan::NodePlan& entry = plan.nodes[static_cast<std::size_t>(node)];
    return entry.grid == first.grid && entry.first_rank == 0 && entry.stage == 0;
  });
  return usual && plan.micro_batches == 1 ? std::optional(first.grid) : std::nullopt;
}

}  // namespace

std::vector<Grid> grids_for(const model::Graph& graph, int ranks) {
  constexpr std::size_t many = 3000;
  const tensor::Shape limits = largest_shape(graph);
  std::vector<Grid> grids;
  for (int most = 5; most >= 1; --most) {
    grids.clear();
    for (const int parts : divisors_of(ranks))
      add_grids(tensor::all_dims, limits, parts, parts == ranks ? most : std::min(most, 2), {}, grids);
    if (grids.size() <= many) break;
  }
  return grids;
}

std::vector<std::vector<Grid>> candidate_cuts(const std::vector<std::vector<int>>& groups, int ranks,
                                              std::span<const plan::Plan> plans, CutPrices& prices,
                                              const CutLimits& limits) {
  std::vector<std::vector<Grid>> chosen = Chooser(groups, prices, limits).choose(grids_for(prices.graph(), ranks));
  for (const plan::Plan& plan : plans) {
    for (std::size_t group = 0; group < groups.size(); ++group)
      if (const auto grid = grid_in(plan, groups[group])) Chooser::add(chosen[group], *grid);
  }
  return chosen;
}

}  // namespace orthant::planner
