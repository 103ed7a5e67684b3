#include "orthant/plan/attempt.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/work.hpp"
#include "orthant/plan/cut_choice.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/spatial.hpp"
#include "orthant/plan/stages.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::plan {
namespace {

using model::Graph;
using tensor::Grid;

const model::Node& at(const Graph& graph, int node) { return graph.nodes[static_cast<std::size_t>(node)]; }

/// The nodes that a cut is for: those that compute or, in a network without weights, all.
std::vector<int> layers_of(const Graph& graph) {
  std::vector<int> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<int> layers;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(layers),
               [&](int node) { return computes(at(graph, node).op); });
  return layers.empty() ? nodes : layers;
}

std::string samples_refusal(const Graph& graph, const CompactGrid& asked, int micro_batches) {
  const std::int64_t samples = micro_batch_samples(graph, micro_batches);
  if (asked.n <= samples) return "";
  return fmt::format("n{} cuts {} of {} into {} parts", asked.n, micro_batches > 1 ? "micro-batches" : "a mini-batch",
                     counted(samples, "sample"), asked.n);
}

std::string stages_refusal(const Graph& graph, const CompactGrid& asked) {
  const int most = most_stages(graph);
  if (asked.p <= most) return "";
  return fmt::format("p{}: {} can be cut into at most {}", asked.p, graph.name, counted(most, "stage"));
}

/// A grid that suits no layer is refused: nothing would be done as asked.
std::string fit_refusal(const Graph& graph, const CompactGrid& asked, const Fit& fit) {
  for (const tensor::Dim dim : tensor::flat_dims(graph.spatial_count)) {
    const int parts = dim == tensor::Dim::d ? asked.d : asked.h;
    if (parts > 1)
      return fmt::format("{}{}: {} is {}-D; cut {} instead", tensor::name_of(dim), parts, graph.name,
                         graph.spatial_count, graph.spatial_count == 2 ? "height and width" : "width");
  }
  const std::vector<int> layers = layers_of(graph);
  const auto suits = [&](int node) { return !fit.misfit(node, dst_grid(asked)); };
  if (stage_ranks(asked) == 1 || std::any_of(layers.begin(), layers.end(), suits)) return "";
  // Where space is cut the first layers have most of it, otherwise the one with most channels would do best.
  const bool space = asked.d * asked.h * asked.w > 1;
  int closest = layers.front();
  for (const int node : layers) {
    if (!space && at(graph, node).shape.c > at(graph, closest).shape.c) closest = node;
  }
  return fmt::format("{} suits no layer of {}: {}: {}", to_text(asked), graph.name, at(graph, closest).name,
                     to_text(*fit.misfit(closest, dst_grid(asked))));
}

/// Stages of which no layer can use all ranks are refused.
std::string idle_refusal(const Plan& plan, const CompactGrid& asked) {
  std::vector<int> most(static_cast<std::size_t>(asked.p));
  for (const NodePlan& node : plan.nodes) {
    int& here = most[static_cast<std::size_t>(node.stage)];
    here = std::max(here, tensor::parts(node.grid));
  }
  const auto least = std::min_element(most.begin(), most.end());
  if (*least == stage_ranks(asked)) return "";
  const auto stage = static_cast<int>(least - most.begin());
  const auto first =
      std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) { return node.stage == stage; });
  if (asked.p == 1)
    return fmt::format("{}: no layer of the network can use more than {} of the {}", to_text(asked), *least,
                       counted(stage_ranks(asked), "rank"));
  return fmt::format("{}: stage {}, from {} on, has work for {} of its {}", to_text(asked), stage, first->node, *least,
                     counted(stage_ranks(asked), "rank"));
}

std::string verify_refusal(const Plan& plan, const Graph& graph) {
  try {
    verify(plan, graph);
    return "";
  } catch (const base::Error& error) {
    return error.what();
  }
}

/// Flops of the layers that the grid suits; their number where nothing has flops.
std::int64_t suited_work(const Graph& graph, const model::GraphWork& work, const Fit& fit, const Grid& grid) {
  std::int64_t sum = 0;
  for (const int node : layers_of(graph)) {
    const std::int64_t flops = work.nodes[static_cast<std::size_t>(node)].flops;
    if (!fit.misfit(node, grid)) sum += std::max<std::int64_t>(flops, 1);
  }
  return sum;
}

}  // namespace

std::int64_t micro_batch_samples(const Graph& graph, int micro_batches) {
  return graph.nodes.front().shape.n / std::max(micro_batches, 1);
}

int sample_groups(std::int64_t samples, int ranks) {
  const auto common = static_cast<int>(std::gcd(samples, static_cast<std::int64_t>(ranks)));
  for (int groups = std::min(common, std::max(ranks / 2, 1)); groups > 1; --groups) {
    if (common % groups == 0) return groups;
  }
  return 1;
}

Grid best_spatial(const Graph& graph, int blocks) {
  const model::GraphWork work = model::work_of(graph);
  const Fit fit(graph, graph.nodes.front().shape.n);
  Grid best;
  std::int64_t most = 0;
  for (const Grid& grid : spatial_grids(graph.nodes.front().shape, blocks)) {
    const std::int64_t suited = suited_work(graph, work, fit, grid);
    if (suited > most) {
      most = suited;
      best = grid;
    }
  }
  return best;
}

Attempt attempt(const Graph& graph, const CompactGrid& asked, int micro_batches) {
  Attempt result;
  Plan& plan = result.plan;
  plan = {.ranks = total_ranks(asked),
          .micro_batches = micro_batches > 0 ? micro_batches : pipeline_pieces(graph, asked.p, asked.n),
          .nodes = {}};
  const std::int64_t samples = micro_batch_samples(graph, plan.micro_batches);
  const Fit fit(graph, samples);
  for (const std::string& refusal : {samples_refusal(graph, asked, plan.micro_batches), stages_refusal(graph, asked),
                                     fit_refusal(graph, asked, fit)}) {
    if (!refusal.empty()) return {.plan = {}, .refusal = refusal};
  }
  const std::vector<int> stages = balanced_stages(graph, asked.p);
  const std::vector<Cut> cuts = choose_cuts(graph, asked, fit);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    plan.nodes.push_back({.node = graph.nodes[i].name,
                          .grid = cuts[i].grid,
                          .first_rank = stages[i] * stage_ranks(asked),
                          .channel_parts = cuts[i].channel_parts,
                          .stage = stages[i]});
  }
  result.refusal = idle_refusal(plan, asked);
  if (result.refusal.empty()) result.refusal = verify_refusal(plan, graph);
  return result;
}

}  // namespace orthant::plan
