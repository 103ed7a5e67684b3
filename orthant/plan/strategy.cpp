#include "orthant/plan/strategy.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/work.hpp"
#include "orthant/plan/cut_choice.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/spatial.hpp"
#include "orthant/plan/stages.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;
using model::Graph;
using tensor::Grid;

const std::array<std::string, 7> names{"data",     "spatial",     "filter",      "channel",
                                       "pipeline", "data+filter", "data+spatial"};

constexpr int most_ranks = 1 << 20;

int node_count(const Graph& graph) { return static_cast<int>(graph.nodes.size()); }
const model::Node& at(const Graph& graph, int node) { return graph.nodes[static_cast<std::size_t>(node)]; }

/// Flops of the layers that the grid suits.
std::int64_t suited_flops(const Graph& graph, const model::GraphWork& work, const Fit& fit, const Grid& grid) {
  std::int64_t sum = 0;
  for (int node = 0; node < node_count(graph); ++node) {
    const std::int64_t flops = work.nodes[static_cast<std::size_t>(node)].flops;
    if (flops > 0 && !fit.misfit(node, grid)) sum += flops;
  }
  return sum;
}

/// The spatial grid that suits most of the network; all 1 if there is none.
Grid best_spatial(const Graph& graph, int parts) {
  const model::GraphWork work = model::work_of(graph);
  const Fit fit(graph, graph.nodes.front().shape.n);
  Grid best;
  std::int64_t most = 0;
  for (const Grid& grid : spatial_grids(graph.nodes.front().shape, parts)) {
    const std::int64_t flops = suited_flops(graph, work, fit, grid);
    if (flops > most) {
      most = flops;
      best = grid;
    }
  }
  return best;
}

/// A bound of the number of blocks into which some layer can be cut.
std::int64_t most_blocks(const Graph& graph) {
  const Fit fit(graph, graph.nodes.front().shape.n);
  std::int64_t most = 1;
  for (int node = 0; node < node_count(graph); ++node) {
    std::int64_t blocks = 1;
    for (const tensor::Dim dim : tensor::spatial_dims) blocks *= fit.most_parts(node, dim);
    most = std::max(most, blocks);
  }
  return most;
}

CompactGrid spatial_part(const Graph& graph, const std::string& name, int parts) {
  const Grid grid = best_spatial(graph, parts);
  if (parts > 1 && tensor::parts(grid) == 1) {
    int fewer = static_cast<int>(std::min<std::int64_t>(parts - 1, most_blocks(graph)));
    while (fewer > 1 && tensor::parts(best_spatial(graph, fewer)) == 1) --fewer;
    fail(Exit::does_not_fit, "{}: no layer of {} can be cut into {} blocks; at most {} fit, e.g. --strategy {}", name,
         graph.name, parts, fewer, fewer > 1 ? fmt::format("spatial --ranks {}", fewer) : "filter");
  }
  return {.d = grid.d, .h = grid.h, .w = grid.w};
}

/// As many as divide both, but not all ranks: something is left to cut in another way.
int sample_groups(const Graph& graph, int ranks) {
  const auto common = static_cast<int>(std::gcd(graph.nodes.front().shape.n, static_cast<std::int64_t>(ranks)));
  for (int groups = std::min(common, std::max(ranks / 2, 1)); groups > 1; --groups) {
    if (common % groups == 0) return groups;
  }
  return 1;
}

void check_samples(const Graph& graph, const CompactGrid& asked) {
  const std::int64_t samples = graph.nodes.front().shape.n;
  if (asked.n <= samples) return;
  CompactGrid possible = asked;
  possible.n = static_cast<int>(samples);
  fail(Exit::does_not_fit,
       "n{} cuts a mini-batch of {} into {} parts; at most n{} fits, e.g. --grid {}, or a mini-batch "
       "of {}",
       asked.n, samples, asked.n, samples, to_text(possible), asked.n);
}

bool suits_some(const Graph& graph, const CompactGrid& asked, const Fit& fit) {
  for (int node = 0; node < node_count(graph); ++node) {
    if (computes(at(graph, node).op) && !fit.misfit(node, dst_grid(asked))) return true;
  }
  return false;
}

/// The largest grid below the asked one that suits some layer.
CompactGrid nearest_grid(const Graph& graph, const CompactGrid& asked, const Fit& fit, int node) {
  CompactGrid grid = asked;
  grid.d = std::min(grid.d, fit.most_parts(node, tensor::Dim::d));
  grid.h = std::min(grid.h, fit.most_parts(node, tensor::Dim::h));
  grid.w = std::min(grid.w, fit.most_parts(node, tensor::Dim::w));
  std::int64_t channels = 1;
  for (const model::Node& layer : graph.nodes) channels = std::max(channels, layer.shape.c);
  grid.c = static_cast<int>(std::min<std::int64_t>(grid.c, channels));
  grid.f = static_cast<int>(std::min<std::int64_t>(grid.f, channels));
  const int most_f = grid.f;
  while (grid.c > 1 && !suits_some(graph, grid, fit)) {
    grid.f = most_f;
    while (grid.f > 1 && !suits_some(graph, grid, fit)) --grid.f;
    if (!suits_some(graph, grid, fit)) --grid.c;
  }
  while (grid.f > 1 && !suits_some(graph, grid, fit)) --grid.f;
  return grid;
}

/// Refuses a grid that suits no layer: nothing would be done as asked.
void check_suits_some(const Graph& graph, const CompactGrid& asked, const Fit& fit) {
  if (graph.spatial_count == 2 && asked.d > 1) {
    CompactGrid flat = asked;
    flat.h *= flat.d;
    flat.d = 1;
    fail(Exit::does_not_fit, "d{}: {} is 2-D; cut height and width instead, e.g. --grid {}", asked.d, graph.name,
         to_text(flat));
  }
  if (stage_ranks(asked) == 1 || suits_some(graph, asked, fit)) return;
  // Where space is cut the first layers have most of it, otherwise the one with most channels would do best.
  const bool space = asked.d * asked.h * asked.w > 1;
  int closest = -1;
  for (int node = 0; node < node_count(graph); ++node) {
    if (!computes(at(graph, node).op)) continue;
    if (closest < 0 || (!space && at(graph, node).shape.c > at(graph, closest).shape.c)) closest = node;
  }
  if (closest < 0) fail(Exit::does_not_fit, "{}: there is no layer to cut; use one rank", graph.name);
  fail(Exit::does_not_fit, "{} suits no layer of {}: {}: {}; the nearest that does is --grid {}", to_text(asked),
       graph.name, at(graph, closest).name, to_text(*fit.misfit(closest, dst_grid(asked))),
       to_text(nearest_grid(graph, asked, fit, closest)));
}

/// Refuses stages of which no layer can use all ranks.
void check_stages_use_ranks(const Plan& plan, const CompactGrid& asked) {
  std::vector<int> most(static_cast<std::size_t>(asked.p));
  for (const NodePlan& node : plan.nodes) {
    int& here = most[static_cast<std::size_t>(node.stage)];
    here = std::max(here, tensor::parts(node.grid));
  }
  const auto least = std::min_element(most.begin(), most.end());
  if (*least == stage_ranks(asked)) return;
  const auto stage = static_cast<int>(least - most.begin());
  const auto first =
      std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) { return node.stage == stage; });
  fail(Exit::does_not_fit,
       "{}: stage {}, from {} on, has work for {} of its {} ranks; use fewer stages or fewer ranks in each",
       to_text(asked), stage, first->node, *least, stage_ranks(asked));
}

}  // namespace

std::span<const std::string> strategy_names() { return names; }

CompactGrid strategy_grid(const Graph& graph, const std::string& name, int ranks) {
  if (ranks < 1 || ranks > most_ranks) fail(Exit::usage, "{} ranks; 1 to {} are supported", ranks, most_ranks);
  if (name == "data") return {.n = ranks};
  if (name == "spatial") return spatial_part(graph, name, ranks);
  if (name == "filter") return {.f = ranks};
  if (name == "channel") return {.c = ranks};
  if (name == "pipeline") return {.p = ranks};
  const int groups = sample_groups(graph, ranks);
  if (name == "data+filter") return {.n = groups, .f = ranks / groups};
  if (name == "data+spatial") {
    CompactGrid grid = spatial_part(graph, name, ranks / groups);
    grid.n = groups;
    return grid;
  }
  fail(Exit::usage, "unknown strategy '{}'{}", name, base::suggestion(name, names));
}

Plan make_plan(const Graph& graph, const CompactGrid& asked) {
  check_samples(graph, asked);
  if (const int most = most_stages(graph); asked.p > most) {
    CompactGrid possible = asked;
    possible.p = most;
    fail(Exit::does_not_fit, "p{}: {} has {} layers that compute; at most p{} fits, e.g. --grid {}", asked.p,
         graph.name, most, most, to_text(possible));
  }
  Plan plan{.ranks = total_ranks(asked), .micro_batches = pipeline_pieces(graph, asked.p, asked.n), .nodes = {}};
  const Fit fit(graph, graph.nodes.front().shape.n / plan.micro_batches);
  check_suits_some(graph, asked, fit);

  const std::vector<int> stages = balanced_stages(graph, asked.p);
  const std::vector<Cut> cuts = choose_cuts(graph, asked, fit);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    plan.nodes.push_back({.node = graph.nodes[i].name,
                          .grid = cuts[i].grid,
                          .first_rank = stages[i] * stage_ranks(asked),
                          .channel_parts = cuts[i].channel_parts,
                          .stage = stages[i]});
  }
  check_stages_use_ranks(plan, asked);
  return plan;
}

Plan make_plan(const Graph& graph, const std::string& name, int ranks) {
  return make_plan(graph, strategy_grid(graph, name, ranks));
}

}  // namespace orthant::plan
