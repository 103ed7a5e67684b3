#include "orthant/model/traits.hpp"
#include "orthant/plan/plan.hpp"

namespace orthant::plan {
namespace {

using Cuts = std::vector<std::int64_t>;

/// A balanced cut of `extent` items of `width` cells each into `count` blocks.
Cuts wide_cuts(std::int64_t extent, int count, std::int64_t width) {
  Cuts cuts;
  for (int i = 0; i <= count; ++i) cuts.push_back(tensor::block_begin(extent, count, i) * width);
  return cuts;
}

/// Where channels may be cut only in places: their cuts.
Cuts channel_cuts(const model::Graph& graph, const model::Node& node, int count) {
  const model::OpTraits traits = model::traits_of(node.op);
  if (traits.contraction && traits.contraction->groups > 1)
    return wide_cuts(traits.contraction->groups, count, node.shape.c / traits.contraction->groups);
  if (model::flattens_space(traits.reads)) {
    const tensor::Shape& src = graph.nodes[static_cast<std::size_t>(node.srcs.front())].shape;
    return wide_cuts(src.c, count, src.d * src.h * src.w);
  }
  return {};
}

}  // namespace

tensor::Distribution distribution(const Plan& plan, const model::Graph& graph, int node) {
  const NodePlan& entry = plan.nodes[static_cast<std::size_t>(node)];
  const model::Node& op = graph.nodes[static_cast<std::size_t>(node)];
  tensor::Distribution result{.global = op.shape, .grid = entry.grid, .first_rank = entry.first_rank, .cuts = {}};
  if (entry.grid.c > 1) {
    result.cuts[static_cast<std::size_t>(tensor::Dim::c)] = channel_cuts(graph, op, entry.grid.c);
  }
  return result;
}

tensor::Distribution loss_distribution(const Plan& plan, const model::Graph& graph) {
  tensor::Distribution result = distribution(plan, graph, static_cast<int>(graph.nodes.size()) - 1);
  result.cuts = {};
  result.grid.n *= result.grid.c;
  result.grid.c = 1;
  return result;
}

}  // namespace orthant::plan
