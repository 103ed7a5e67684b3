#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/plan.hpp"

#include <algorithm>

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;
using model::Graph;
using tensor::Dim;

void check_names(const Plan& plan, const Graph& graph) {
  if (plan.nodes.size() != graph.nodes.size()) {
    fail(Exit::bad_data, "the plan has {} nodes but {} has {}; make the plan for this network", plan.nodes.size(),
         graph.name, graph.nodes.size());
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].node == graph.nodes[i].name) continue;
    fail(Exit::bad_data, "the plan's node {} is '{}' but {} has '{}' there; make the plan for this network", i,
         plan.nodes[i].node, graph.name, graph.nodes[i].name);
  }
}

/// Parts of a grid that may come from a file: 0 if they are not positive or too many.
std::int64_t safe_parts(const tensor::Grid& grid) {
  constexpr std::int64_t most = 1 << 20;
  std::int64_t product = 1;
  for (const Dim dim : tensor::all_dims) {
    if (grid[dim] < 1 || grid[dim] > most) return 0;
    product *= grid[dim];
    if (product > most) return 0;
  }
  return product;
}

void check_ranks(const Plan& plan, const NodePlan& node) {
  const std::int64_t parts = safe_parts(node.grid);
  if (parts == 0) {
    fail(Exit::bad_data, "{}: the grid's parts must be at least 1, and at most 1048576 together", node.node);
  }
  if (node.first_rank < 0) fail(Exit::bad_data, "{}: first_rank is {}; ranks count from 0", node.node, node.first_rank);
  if (parts + node.first_rank <= plan.ranks) return;
  fail(Exit::bad_data, "{}: grid {} from rank {} on needs {} but the plan is for {}; let the grid have at most {}",
       node.node, tensor::to_text(node.grid), node.first_rank, counted(parts + node.first_rank, "rank"),
       counted(plan.ranks, "rank"), counted(std::max(plan.ranks - node.first_rank, 1), "part"));
}

/// True if every block of the tensor has cells. All other dims are cut in a balanced way and into no more parts than
/// they have cells.
bool has_no_empty_blocks(const tensor::Distribution& dst) {
  for (int i = 0; i < dst.grid.c; ++i) {
    const tensor::Range block = tensor::block(dst, Dim::c, i);
    if (block.lo >= block.hi) return false;
  }
  return true;
}

/// Every rank must have something to do. In most plans a few nodes tell; otherwise all parts are looked at.
void check_work(const Plan& plan, const Graph& graph) {
  std::vector<tensor::Distribution> all;
  for (int node = 0; node < static_cast<int>(plan.nodes.size()); ++node) {
    tensor::Distribution dst = distribution(plan, graph, node);
    if (tensor::parts(dst.grid) == plan.ranks && has_no_empty_blocks(dst)) return;
    all.push_back(std::move(dst));
  }
  std::vector<bool> works(static_cast<std::size_t>(plan.ranks), false);
  for (const tensor::Distribution& dst : all) {
    for (int part = 0; part < tensor::parts(dst.grid); ++part) {
      const int rank = dst.first_rank + part;
      auto&& working = works[static_cast<std::size_t>(rank)];
      working = working || !tensor::is_empty(tensor::owned_box(dst, rank));
    }
  }
  const auto idle = std::find(works.begin(), works.end(), false);
  if (idle == works.end()) return;
  fail(Exit::bad_data, "rank {} of the plan has nothing to do in any layer; use {} or cut some layer further",
       idle - works.begin(), counted(std::count(works.begin(), works.end(), true), "rank"));
}

/// True if so many parts of a node along `dim` all have cells, and not only padding to look at.
bool fits(const Plan& plan, const Graph& graph, int index, Dim dim, int parts) {
  tensor::Shape shape = graph.nodes[static_cast<std::size_t>(index)].shape;
  shape.n /= plan.micro_batches;
  return parts <= shape[dim] && padding_part(graph, index, dim, parts) < 0;
}

/// More parts than cells leave ranks without work where nobody meant it, and a part needs more than padding.
void check_parts(const Plan& plan, const Graph& graph, int index) {
  const NodePlan& node = plan.nodes[static_cast<std::size_t>(index)];
  tensor::Shape shape = graph.nodes[static_cast<std::size_t>(index)].shape;
  shape.n /= plan.micro_batches;
  for (const Dim dim : tensor::all_dims) {
    const int parts = node.grid[dim];
    if (fits(plan, graph, index, dim, parts)) continue;
    auto fewer = static_cast<int>(std::min<std::int64_t>(parts, shape[dim]));
    while (fewer > 1 && !fits(plan, graph, index, dim, fewer)) --fewer;
    const char* name = tensor::name_of(dim);
    if (parts > shape[dim]) {
      const char* cell = dim == Dim::n ? "sample" : dim == Dim::c ? "channel" : "cell";
      fail(Exit::bad_data, "{}: {}{} cuts {} into {} parts; at most {}{} works here", node.node, name, parts,
           counted(shape[dim], cell), parts, name, fewer);
    }
    fail(Exit::bad_data, "{}: part {} of {}{} would see only padding; at most {}{} works here", node.node,
         padding_part(graph, index, dim, parts), name, parts, name, fewer);
  }
}

void check_channels(const NodePlan& node, const model::Op& op, std::int64_t src_channels) {
  if (model::traits_of(op).needs_all_channels && node.grid.c > 1) {
    fail(Exit::bad_data, "{}: c{} cuts the channels of a {}, which needs them all; cut n, d, h or w there", node.node,
         node.grid.c, model::name_of(op));
  }
  if (node.channel_parts == 1) return;
  if (node.channel_parts < 1 || node.grid.c % node.channel_parts != 0) {
    int divisor = std::clamp(node.channel_parts, 1, node.grid.c);
    while (node.grid.c % divisor != 0) --divisor;
    fail(Exit::bad_data, "{}: {} channel parts do not divide c{}; use e.g. {}", node.node, node.channel_parts,
         node.grid.c, divisor);
  }
  if (!computes(op)) {
    fail(Exit::bad_data, "{}: channel parts are for convolutions and dense layers, this is a {}; leave them out",
         node.node, model::name_of(op));
  }
  if (groups_of(op) > 1) {
    fail(Exit::bad_data, "{}: a convolution with {} groups cannot cut its sums over channels; use stationary-y",
         node.node, groups_of(op));
  }
  if (node.channel_parts > src_channels) {
    fail(Exit::bad_data, "{}: {} channel parts of {} src channels leave some of them without any; use at most {}",
         node.node, node.channel_parts, src_channels, src_channels);
  }
}

void check_stage(const Plan& plan, const Graph& graph, std::size_t index) {
  const NodePlan& node = plan.nodes[index];
  if (node.stage < 0) fail(Exit::bad_data, "{}: stage is {}; stages count from 0", node.node, node.stage);
  for (const int src : graph.nodes[index].srcs) {
    const NodePlan& source = plan.nodes[static_cast<std::size_t>(src)];
    if (source.stage <= node.stage) continue;
    fail(Exit::bad_data, "{}: stage {} reads {} of the later stage {}; let its stage be at least {}", node.node,
         node.stage, source.node, source.stage, source.stage);
  }
}

}  // namespace

void check_micro_batches(const Graph& graph, int micro_batches) {
  const std::int64_t samples = graph.nodes.front().shape.n;
  if (micro_batches < 1 || micro_batches > samples) {
    fail(Exit::bad_data, "{} micro-batches of a mini-batch of {}; use 1 to {}", micro_batches, samples, samples);
  }
  for (const model::LossTerm& term : graph.loss.terms) {
    if (micro_batches > 1 && term.kind == model::LossKind::soft_dice) {
      fail(Exit::bad_data, "{} micro-batches with a {} loss, whose sums run over the mini-batch; use 1 micro-batch",
           micro_batches, model::name_of(term.kind));
    }
  }
}

void verify(const Plan& plan, const Graph& graph) {
  check_names(plan, graph);
  if (plan.ranks < 1) fail(Exit::bad_data, "the plan is for {} ranks; at least 1 is needed", plan.ranks);
  check_micro_batches(graph, plan.micro_batches);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    check_ranks(plan, plan.nodes[i]);
    const auto& srcs = graph.nodes[i].srcs;
    check_channels(plan.nodes[i], graph.nodes[i].op,
                   srcs.empty() ? 0 : graph.nodes[static_cast<std::size_t>(srcs.front())].shape.c);
    check_parts(plan, graph, static_cast<int>(i));
    check_stage(plan, graph, i);
  }
  check_work(plan, graph);
}

}  // namespace orthant::plan
