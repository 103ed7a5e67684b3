#include "orthant/plan/share.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::plan {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;
using Boxes = std::vector<Box>;

/// The sum over src channels cut over ranks: part `channel` of `channel_parts`, and the filters `filters` for it.
struct ChannelCut {
  Range filters;
  std::vector<Range> channels;
};

/// Finds what a rank reads of the sources for what it computes.
struct Reading {
  const model::Graph& graph;
  int index;
  Share& share;

  [[nodiscard]] const model::Node& node() const { return graph.nodes[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const tensor::Shape& src(std::size_t i = 0) const {
    return graph.nodes[static_cast<std::size_t>(node().srcs[i])].shape;
  }

  void operator()(const model::NoSource&) const {}
  void operator()(const model::SameCells&) const { share.sources.assign(node().srcs.size(), {share.computed}); }
  void operator()(const model::UnderWindow& map) const {
    share.sources = {{tensor::cells_read(map.window, share.computed, src(), node().shape)}};
  }
  void operator()(const model::UnderTransposedWindow& map) const {
    share.sources = {{tensor::cells_reading(map.window, share.computed, src())}};
  }
  void operator()(const model::WholeSpace&) const { share.sources = {{all_space(share.computed[Dim::c])}}; }
  void operator()(const model::FlattenedChannels&) const {
    const std::int64_t pixels = src().d * src().h * src().w;
    share.sources = {{all_space({share.computed.lo.c / pixels, share.computed.hi.c / pixels})}};
  }
  void operator()(const model::ConcatenatedChannels&) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < node().srcs.size(); ++i) {
      const std::int64_t channels = src(i).c;
      Box box = share.computed;
      box.lo.c = std::clamp<std::int64_t>(box.lo.c - first, 0, channels);
      box.hi.c = std::clamp<std::int64_t>(box.hi.c - first, 0, channels);
      share.sources.push_back({box});
      first += channels;
    }
  }

  [[nodiscard]] Box all_space(const Range& channels) const {
    Box box = tensor::whole(src());
    box.set(Dim::n, share.computed[Dim::n]);
    box.set(Dim::c, channels);
    return box;
  }
};

ChannelCut cut_of(const Plan& plan, const model::Graph& graph, int index, int rank, std::int64_t groups) {
  const NodePlan& entry = plan.nodes[static_cast<std::size_t>(index)];
  const model::Node& node = graph.nodes[static_cast<std::size_t>(index)];
  const std::int64_t channels = graph.nodes[static_cast<std::size_t>(node.srcs.front())].shape.c;
  const tensor::Distribution dst = distribution(plan, graph, index);
  const int at = tensor::coordinates(dst.grid, rank - dst.first_rank).c;
  if (groups > 1) {
    const Range filters = tensor::block(dst, Dim::c, at);
    const std::int64_t per_group = node.shape.c / groups;
    return {filters, {{filters.lo / per_group * (channels / groups), filters.hi / per_group * (channels / groups)}}};
  }
  const int sums = entry.channel_parts;
  const int first = at / sums * sums;
  ChannelCut cut{.filters = {tensor::block(dst, Dim::c, first).lo, tensor::block(dst, Dim::c, first + sums - 1).hi},
                 .channels = {}};
  if (sums == 1) {
    cut.channels.push_back({0, channels});
    return cut;
  }
  for (int block = at % sums; block < dst.grid.c; block += sums) {
    cut.channels.push_back(
        {tensor::block_begin(channels, dst.grid.c, block), tensor::block_begin(channels, dst.grid.c, block + 1)});
  }
  return cut;
}

/// The box once with each of the channel ranges.
Boxes with_channels(Box box, const std::vector<Range>& ranges) {
  Boxes boxes;
  for (const Range& channels : ranges) {
    box.set(Dim::c, channels);
    boxes.push_back(box);
  }
  return boxes;
}

std::int64_t length(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const Range& range : ranges) sum += range.hi - range.lo;
  return sum;
}

}  // namespace

Share share_of(const Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, node);
  Share share{.owned = tensor::owned_box(dst, rank), .computed = {}, .sources = {}};
  const model::Node& entry = graph.nodes[static_cast<std::size_t>(node)];
  if (!tensor::takes_part(dst, rank)) {
    share.sources.resize(entry.srcs.size());
    return share;
  }
  // A rank without filters of its own still adds up its channels for the others of its group.
  const tensor::Grid at = tensor::coordinates(dst.grid, rank - dst.first_rank);
  for (const Dim dim : tensor::all_dims) share.computed.set(dim, tensor::block(dst, dim, at[dim]));
  const model::OpTraits traits = model::traits_of(entry.op);
  ChannelCut cut;
  if (traits.contraction) {
    cut = cut_of(plan, graph, node, rank, traits.contraction->groups);
    share.computed.set(Dim::c, cut.filters);
  }
  if (tensor::is_empty(share.computed)) {
    share.computed = {};
    share.sources.assign(entry.srcs.size(), {});
    return share;
  }
  std::visit(Reading{graph, node, share}, traits.reads);
  if (traits.contraction) share.sources = {with_channels(share.sources.front().front(), cut.channels)};
  for (Boxes& boxes : share.sources) std::erase_if(boxes, [](const Box& box) { return tensor::is_empty(box); });
  return share;
}

Shard shard_of(const Plan& plan, const model::Graph& graph, const model::Parameter& parameter, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, parameter.node);
  if (!tensor::takes_part(dst, rank)) return {};
  const model::OpTraits traits = model::traits_of(graph.nodes[static_cast<std::size_t>(parameter.node)].op);
  const int at = tensor::coordinates(dst.grid, rank - dst.first_rank).c;
  const Range own = tensor::block(dst, Dim::c, at);
  if (parameter.extents.size() == 1) return {.first = {own}, .second = {}};

  const std::int64_t groups = traits.contraction.value().groups;
  const ChannelCut cut = cut_of(plan, graph, parameter.node, rank, groups);
  const bool transposed = model::is_transposed(traits.reads);
  if (groups > 1)
    return {.first = transposed ? cut.channels : std::vector<Range>{cut.filters},
            .second = {{0, parameter.extents[1]}}};
  if (transposed) return {.first = cut.channels, .second = {cut.filters}};
  return {.first = {cut.filters}, .second = cut.channels};
}

std::int64_t count(const model::Parameter& parameter, const Shard& shard) {
  if (shard.first.empty()) return 0;
  std::int64_t product = length(shard.first);
  if (parameter.extents.size() > 1) product = base::checked_mul(product, length(shard.second));
  for (std::size_t i = 2; i < parameter.extents.size(); ++i) product = base::checked_mul(product, parameter.extents[i]);
  return product;
}

std::vector<int> shard_holders(const Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, node);
  if (!tensor::takes_part(dst, rank)) return {};
  const int at = tensor::coordinates(dst.grid, rank - dst.first_rank).c;
  std::vector<int> holders;
  for (int part = 0; part < tensor::parts(dst.grid); ++part) {
    if (tensor::coordinates(dst.grid, part).c == at) holders.push_back(dst.first_rank + part);
  }
  return holders;
}

StatisticsGroup statistics_group(const Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, node);
  const Statistics statistics = plan.nodes[static_cast<std::size_t>(node)].statistics;
  StatisticsGroup group;
  for (const int other : shard_holders(plan, graph, node, rank)) {
    const bool same_samples = tensor::coordinates(dst.grid, other - dst.first_rank).n ==
                              tensor::coordinates(dst.grid, rank - dst.first_rank).n;
    if (statistics == Statistics::local && other != rank) continue;
    if (statistics == Statistics::spatial && !same_samples) continue;
    group.ranks.push_back(other);
    const Box box = tensor::owned_box(dst, other);
    if (!tensor::is_empty(box)) group.pixels += tensor::pixels(tensor::extents_of(box));
  }
  return group;
}

}  // namespace orthant::plan
