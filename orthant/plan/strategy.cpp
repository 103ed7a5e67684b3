#include "orthant/plan/strategy.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/plan/attempt.hpp"
#include "orthant/plan/fit.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;
using model::Graph;
using tensor::Grid;

const std::array<std::string, 7> names{"data",     "spatial",     "filter",      "channel",
                                       "pipeline", "data+filter", "data+spatial"};

constexpr int most_ranks = 1 << 20;

/// A bound of the number of blocks into which some layer can be cut.
std::int64_t most_blocks(const Graph& graph) {
  const Fit fit(graph, graph.nodes.front().shape.n);
  std::int64_t most = 1;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    std::int64_t blocks = 1;
    for (const tensor::Dim dim : tensor::spatial_dims) blocks *= fit.most_parts(node, dim);
    most = std::max(most, blocks);
  }
  return most;
}

CompactGrid in_space(const Grid& grid, int groups) { return {.n = groups, .d = grid.d, .h = grid.h, .w = grid.w}; }

/// Sample groups with the space of each cut over its ranks.
CompactGrid spatial_grid(const Graph& graph, const std::string& name, int ranks, int groups, int micro_batches) {
  const int blocks = ranks / groups;
  const Grid grid = best_spatial(graph, blocks);
  if (blocks == 1 || tensor::parts(grid) == blocks) return in_space(grid, groups);
  int fewer = static_cast<int>(std::min<std::int64_t>(blocks - 1, most_blocks(graph)));
  while (fewer > 1 && tensor::parts(best_spatial(graph, fewer)) == 1) --fewer;
  const std::array wanted{in_space(best_spatial(graph, fewer), groups)};
  fail(Exit::does_not_fit, "{}: no layer of {} can be cut into {} blocks; {}", name, graph.name, blocks,
       advice(graph, {.d = ranks}, micro_batches, wanted));
}

}  // namespace

std::span<const std::string> strategy_names() { return names; }

CompactGrid strategy_grid(const Graph& graph, const std::string& name, int ranks, int micro_batches) {
  if (ranks < 1 || ranks > most_ranks) fail(Exit::usage, "{} ranks; 1 to {} are supported", ranks, most_ranks);
  if (name == "data") return {.n = ranks};
  if (name == "spatial") return spatial_grid(graph, name, ranks, 1, micro_batches);
  if (name == "filter") return {.f = ranks};
  if (name == "channel") return {.c = ranks};
  if (name == "pipeline") return {.p = ranks};
  const int groups = sample_groups(micro_batch_samples(graph, micro_batches), ranks);
  if (name == "data+filter") return {.n = groups, .f = ranks / groups};
  if (name == "data+spatial") return spatial_grid(graph, name, ranks, groups, micro_batches);
  fail(Exit::usage, "unknown strategy '{}'{}", name, base::suggestion(name, names));
}

Plan make_plan(const Graph& graph, const CompactGrid& asked, int micro_batches) {
  if (micro_batches > 0) check_micro_batches(graph, micro_batches);
  Attempt made = attempt(graph, asked, micro_batches);
  if (made.refusal.empty()) return std::move(made.plan);
  fail(Exit::does_not_fit, "{}; {}", made.refusal, advice(graph, asked, micro_batches));
}

Plan make_plan(const Graph& graph, const std::string& name, int ranks, int micro_batches) {
  return make_plan(graph, strategy_grid(graph, name, ranks, micro_batches), micro_batches);
}

}  // namespace orthant::plan
