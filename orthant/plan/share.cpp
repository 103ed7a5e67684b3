#include "orthant/plan/share.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/one_of.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orthant::plan {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;
using Boxes = std::vector<Box>;

bool is_empty(const Range& range) { return range.lo >= range.hi; }

/// Where a part that computes nothing reads: after all cells, so that ranges rise with the coordinate.
Range nothing_of(std::int64_t extent) { return {extent, extent}; }

/// What is read of a source along a spatial dim for a range of dst that is not empty.
struct SpatialReading {
  Dim dim;
  Range range;
  const tensor::Shape& src;
  const tensor::Shape& dst;

  Range operator()(const model::UnderWindow& map) const { return tensor::cells_read(map.window, dim, range, src, dst); }
  Range operator()(const model::UnderTransposedWindow& map) const {
    return tensor::cells_reading(map.window, dim, range, src);
  }
  template <base::OneOf<model::WholeSpace, model::FlattenedChannels> Map>
  Range operator()(const Map&) const {
    return {0, src[dim]};
  }
  Range operator()(const model::BroadcastCells&) const { return src[dim] == dst[dim] ? range : Range{0, 1}; }
  Range operator()(const model::AlongAxes& map) const {
    return tensor::cells_of(model::rule_of(map, dim), range, src[dim], dst[dim]);
  }
  /// Whole blocks: where a cut is inside one, both sides read it.
  Range operator()(const model::CellBlocks& map) const {
    const std::int64_t factor = map.factor[dim];
    if (map.to_channels) return {range.lo * factor, range.hi * factor};
    return {range.lo / factor, (range.hi + factor - 1) / factor};
  }
  template <base::OneOf<model::NoSource, model::SameCells, model::ShuffledChannels, model::ConcatenatedChannels> Map>
  Range operator()(const Map&) const {
    return range;
  }
};

/// What is read of a source's channels for a range of dst's.
struct ChannelReading {
  Range range;
  const model::Graph& graph;
  const model::Node& node;
  std::size_t source;

  [[nodiscard]] std::vector<Range> ranges(const model::ShuffledChannels& map) const {
    return model::channels_of(map, range, node.shape.c);
  }
  template <class Map>
  [[nodiscard]] std::vector<Range> ranges(const Map& map) const {
    return {(*this)(map)};
  }

  [[nodiscard]] const tensor::Shape& src(std::size_t i) const {
    return graph.nodes[static_cast<std::size_t>(node.srcs[i])].shape;
  }

  Range operator()(const model::FlattenedChannels&) const {
    const std::int64_t pixels = src(source).d * src(source).h * src(source).w;
    return {range.lo / pixels, range.hi / pixels};
  }
  Range operator()(const model::ConcatenatedChannels&) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < source; ++i) first += src(i).c;
    const std::int64_t channels = src(source).c;
    return {std::clamp<std::int64_t>(range.lo - first, 0, channels),
            std::clamp<std::int64_t>(range.hi - first, 0, channels)};
  }
  Range operator()(const model::BroadcastCells&) const { return src(source).c == node.shape.c ? range : Range{0, 1}; }
  Range operator()(const model::AlongAxes& map) const {
    return {map.first_channel + range.lo, map.first_channel + range.hi};
  }
  Range operator()(const model::CellBlocks& map) const {
    const std::int64_t count = model::count(map);
    if (!map.to_channels) return {range.lo * count, range.hi * count};
    return {range.lo / count, (range.hi + count - 1) / count};
  }
  template <base::OneOf<model::NoSource, model::SameCells, model::UnderWindow, model::UnderTransposedWindow,
                        model::WholeSpace>
                Map>
  Range operator()(const Map&) const {
    return range;
  }
};

/// Ranges that follow each other are one.
std::vector<Range> joined(const std::vector<Range>& ranges) {
  std::vector<Range> result;
  for (const Range& range : ranges) {
    if (!result.empty() && result.back().hi == range.lo) {
      result.back().hi = range.hi;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::int64_t length(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const Range& range : ranges) sum += range.hi - range.lo;
  return sum;
}

}  // namespace

NodeCut::NodeCut(const Plan& plan, const model::Graph& graph, int node)
    : graph_(&graph),
      node_(node),
      channel_parts_(plan.nodes[static_cast<std::size_t>(node)].channel_parts),
      traits_(model::traits_of(graph.nodes[static_cast<std::size_t>(node)].op)),
      dst_(distribution(plan, graph, node)) {
  if (!std::holds_alternative<model::WholeSpace>(traits_.reads)) return;
  const int source = this->node().srcs.front();
  if (plan.nodes[static_cast<std::size_t>(source)].stage == plan.nodes[static_cast<std::size_t>(node)].stage)
    summed_ = distribution(plan, graph, source);
}

const tensor::Shape& NodeCut::src(std::size_t source) const {
  return graph_->nodes[static_cast<std::size_t>(node().srcs[source])].shape;
}

NodeCut::ChannelCut NodeCut::channel_cut(int coordinate) const {
  const std::int64_t channels = src(0).c;
  const std::int64_t groups = traits_.contraction.value().groups;
  if (groups > 1) {
    const Range filters = tensor::block(dst_, Dim::c, coordinate);
    const std::int64_t per_group = node().shape.c / groups;
    return {filters, {{filters.lo / per_group * (channels / groups), filters.hi / per_group * (channels / groups)}}};
  }
  const int sums = channel_parts_;
  const int first = coordinate / sums * sums;
  ChannelCut cut{.filters = {tensor::block(dst_, Dim::c, first).lo, tensor::block(dst_, Dim::c, first + sums - 1).hi},
                 .channels = {}};
  if (sums == 1) {
    cut.channels.push_back({0, channels});
    return cut;
  }
  for (int block = coordinate % sums; block < dst_.grid.c; block += sums) {
    cut.channels.push_back(
        {tensor::block_begin(channels, dst_.grid.c, block), tensor::block_begin(channels, dst_.grid.c, block + 1)});
  }
  return cut;
}

/// A rank without filters of its own still adds up its channels for the others of its group.
Range NodeCut::computed(Dim dim, int coordinate) const {
  if (dim == Dim::c && traits_.contraction) return channel_cut(coordinate).filters;
  return tensor::block(dst_, dim, coordinate);
}

Range NodeCut::read_along(std::size_t source, Dim dim, int coordinate) const {
  const Range range = computed(dim, coordinate);
  if (is_empty(range)) return nothing_of(src(source)[dim]);
  if (dim == Dim::n) return range;
  return std::visit(
      [&](const auto& map) {
        return SpatialReading{dim, range, src(source), node().shape}(map);
      },
      traits_.reads);
}

std::vector<Range> NodeCut::channels_read(std::size_t source, int coordinate) const {
  std::vector<Range> channels;
  if (traits_.contraction) {
    ChannelCut cut = channel_cut(coordinate);
    if (!is_empty(cut.filters)) channels = std::move(cut.channels);
  } else {
    const Range range = computed(Dim::c, coordinate);
    if (!is_empty(range))
      channels = std::visit(
          [&](const auto& map) {
            return ChannelReading{range, *graph_, node(), source}.ranges(map);
          },
          traits_.reads);
  }
  std::erase_if(channels, [](const Range& range) { return is_empty(range); });
  return joined(channels);
}

tensor::Demand NodeCut::reading(std::size_t source) const {
  if (summed_) return tensor::demand_of(*summed_);
  return {.grid = dst_.grid,
          .first_rank = dst_.first_rank,
          .along = [this, source](Dim dim, int coordinate) { return read_along(source, dim, coordinate); },
          .channels = [this, source](int coordinate) { return channels_read(source, coordinate); }};
}

/// Every rank computes its part of the sums over the cells that it has, for the one cell of dst.
tensor::Demand NodeCut::summing() const {
  tensor::Demand demand = tensor::demand_of(*summed_);
  demand.along = [whole = *summed_](Dim dim, int coordinate) {
    const Range cells = tensor::block(whole, dim, coordinate);
    if (dim == Dim::n) return cells;
    return is_empty(cells) ? Range{1, 1} : Range{0, 1};
  };
  return demand;
}

tensor::Demand NodeCut::computing() const {
  if (summed_) return summing();
  return {.grid = dst_.grid,
          .first_rank = dst_.first_rank,
          .along = [this](Dim dim, int coordinate) { return computed(dim, coordinate); },
          .channels =
              [this](int coordinate) {
                const Range range = computed(Dim::c, coordinate);
                return is_empty(range) ? std::vector<Range>{} : std::vector<Range>{range};
              }};
}

Share NodeCut::share(int rank) const {
  Share share{.owned = tensor::owned_box(dst_, rank), .computed = {}, .sources = {}};
  share.sources.resize(node().srcs.size());
  const std::vector<Box> computed = tensor::wanted_boxes(computing(), rank);
  if (computed.empty()) return share;
  share.computed = computed.front();
  for (std::size_t i = 0; i < share.sources.size(); ++i) share.sources[i] = tensor::wanted_boxes(reading(i), rank);
  return share;
}

Share share_of(const Plan& plan, const model::Graph& graph, int node, int rank) {
  return NodeCut(plan, graph, node).share(rank);
}

Shard shard_of(const Plan& plan, const model::Graph& graph, const model::Parameter& parameter, int rank) {
  const NodeCut node(plan, graph, parameter.node);
  const tensor::Distribution& dst = node.dst();
  if (!tensor::takes_part(dst, rank)) return {};
  const model::OpTraits traits = model::traits_of(graph.nodes[static_cast<std::size_t>(parameter.node)].op);
  const int at = tensor::coordinates(dst.grid, rank - dst.first_rank).c;
  const Range own = tensor::block(dst, Dim::c, at);
  if (traits.whole_parameters) return {.first = {{0, parameter.extents.front()}}, .second = {}};
  if (parameter.extents.size() == 1) return {.first = {own}, .second = {}};

  const std::int64_t groups = traits.contraction.value().groups;
  const NodeCut::ChannelCut cut = node.channel_cut(at);
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

tensor::RankGroup shard_holders(const Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, node);
  if (model::traits_of(graph.nodes[static_cast<std::size_t>(node)].op).whole_parameters) return {dst, rank, {}};
  return {dst, rank, std::array{Dim::c}};
}

namespace {

/// Ranks with the same samples. Where channels are cut inside a group, those with other channels belong to it, too, and
/// all of them add up the statistics of all groups.
StatisticsGroup sample_statistics(const tensor::Distribution& dst, std::int64_t groups, int rank) {
  const tensor::Grid at = tensor::coordinates(dst.grid, rank - dst.first_rank);
  const Range channels = tensor::block(dst, Dim::c, at.c), samples = tensor::block(dst, Dim::n, at.n);
  if (groups == 0) groups = dst.global.c;
  const std::int64_t per_group = dst.global.c / groups;
  bool between_groups = true;
  for (int part = 0; part < dst.grid.c; ++part)
    between_groups = between_groups && tensor::block(dst, Dim::c, part).lo % per_group == 0;
  StatisticsGroup found;
  found.items = base::checked_product({per_group, dst.global.d, dst.global.h, dst.global.w});
  found.groups = {.groups = groups, .channels = per_group, .first = channels.lo};
  if (between_groups) found.groups = {.groups = (channels.hi - channels.lo) / per_group, .channels = per_group};
  found.statistics = base::checked_mul(samples.hi - samples.lo, found.groups.groups);
  if (found.statistics == 0) return {};
  found.ranks = between_groups ? tensor::RankGroup(dst, rank, std::array{Dim::n, Dim::c})
                               : tensor::RankGroup(dst, rank, std::array{Dim::n});
  return found;
}

}  // namespace

StatisticsGroup statistics_group(const Plan& plan, const model::Graph& graph, int node, int rank) {
  const tensor::Distribution dst = distribution(plan, graph, node);
  if (!tensor::takes_part(dst, rank)) return {};
  const model::OpTraits traits = model::traits_of(graph.nodes[static_cast<std::size_t>(node)].op);
  if (traits.sample_groups) return sample_statistics(dst, *traits.sample_groups, rank);
  const Range channels = tensor::block(dst, Dim::c, tensor::coordinates(dst.grid, rank - dst.first_rank).c);
  const auto of_channels = [&](const tensor::RankGroup& ranks, std::int64_t items) {
    return StatisticsGroup{.ranks = ranks, .items = items, .groups = {}, .statistics = channels.hi - channels.lo};
  };
  tensor::Shape covered = dst.global;
  covered.c = 1;
  const auto cover_own = [&](std::initializer_list<Dim> dims) {
    const tensor::Grid at = tensor::coordinates(dst.grid, rank - dst.first_rank);
    for (const Dim dim : dims) {
      const Range own = tensor::block(dst, dim, at[dim]);
      covered[dim] = own.hi - own.lo;
    }
  };
  switch (plan.nodes[static_cast<std::size_t>(node)].statistics) {
    case Statistics::global: return of_channels({dst, rank, std::array{Dim::c}}, tensor::volume(covered));
    case Statistics::spatial: {
      cover_own({Dim::n});
      return of_channels({dst, rank, std::array{Dim::n, Dim::c}}, tensor::volume(covered));
    }
    case Statistics::local: break;
  }
  cover_own({Dim::n, Dim::d, Dim::h, Dim::w});
  return of_channels({dst, rank, tensor::all_dims}, tensor::volume(covered));
}

}  // namespace orthant::plan
