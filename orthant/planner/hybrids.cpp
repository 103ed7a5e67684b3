#include "orthant/planner/hybrids.hpp"

#include "orthant/plan/attempt.hpp"

#include <algorithm>

namespace orthant::planner {

std::vector<Hybrid> hybrids(const model::Graph& graph, int ranks) {
  std::vector<Hybrid> found;
  const auto add = [&](const plan::CompactGrid& grid) {
    plan::Attempt made = plan::attempt(graph, grid, 0);
    if (made.refusal.empty()) found.push_back({plan::to_text(grid), std::move(made.plan)});
  };
  const std::int64_t samples = graph.nodes.front().shape.n;
  for (int groups = static_cast<int>(std::min<std::int64_t>(ranks, samples)); groups >= 1; --groups) {
    if (ranks % groups != 0 || groups == ranks) continue;
    const int parts = ranks / groups;
    const tensor::Grid space = plan::best_spatial(graph, parts);
    if (tensor::parts(space) == parts) add({.n = groups, .d = space.d, .h = space.h, .w = space.w});
    add({.n = groups, .f = parts});
  }
  return found;
}

double estimate(const plan::Plan& plan, CutPrices& prices) {
  const auto weight = [](const Priced& priced) { return priced.seconds + 0.5 * priced.reduction_seconds; };
  const auto grid_of = [&](int node) -> const tensor::Grid& { return plan.nodes[static_cast<std::size_t>(node)].grid; };
  double seconds = 0;
  for (int node = 0; node < static_cast<int>(plan.nodes.size()); ++node) {
    seconds += weight(prices.own(node, grid_of(node)));
    const auto& srcs = prices.graph().nodes[static_cast<std::size_t>(node)].srcs;
    for (std::size_t i = 0; i < srcs.size(); ++i) {
      const std::vector<Priced>& ways = prices.reading(node, i, grid_of(srcs[i]), grid_of(node));
      double least = weight(ways.front());
      for (const Priced& way : ways) least = std::min(least, weight(way));
      seconds += least;
    }
  }
  return seconds;
}

}  // namespace orthant::planner
