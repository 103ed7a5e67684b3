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
struct ChannelCuts {
  const model::Graph& graph;
  const model::Node& node;
  int count;

  Cuts operator()(const model::Conv& op) const { return between_groups(op.groups); }
  Cuts operator()(const model::ConvTranspose& op) const { return between_groups(op.groups); }
  Cuts operator()(const model::Flatten&) const {
    const tensor::Shape& src = graph.nodes[static_cast<std::size_t>(node.srcs.front())].shape;
    return wide_cuts(src.c, count, src.d * src.h * src.w);
  }
  template <class Other>
  Cuts operator()(const Other&) const {
    return {};
  }

  [[nodiscard]] Cuts between_groups(std::int64_t groups) const {
    return groups > 1 ? wide_cuts(groups, count, node.shape.c / groups) : Cuts{};
  }
};

}  // namespace

tensor::Distribution distribution(const Plan& plan, const model::Graph& graph, int node) {
  const NodePlan& entry = plan.nodes[static_cast<std::size_t>(node)];
  const model::Node& op = graph.nodes[static_cast<std::size_t>(node)];
  tensor::Distribution result{.global = op.shape, .grid = entry.grid, .first_rank = entry.first_rank, .cuts = {}};
  if (entry.grid.c > 1) {
    result.cuts[static_cast<std::size_t>(tensor::Dim::c)] = std::visit(ChannelCuts{graph, op, entry.grid.c}, op.op);
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
