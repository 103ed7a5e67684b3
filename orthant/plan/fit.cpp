#include "orthant/plan/fit.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/one_of.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::plan {
namespace {

using tensor::Dim;

constexpr std::int64_t thinnest = 2;

/// True if a range of dst along a spatial dim reads no cell of the source.
struct ReadsNothing {
  Dim dim;
  const tensor::Range& range;
  const tensor::Shape& src;
  const tensor::Shape& dst;

  bool operator()(const model::UnderWindow& map) const {
    const tensor::Range read = tensor::cells_read(map.window, dim, range, src, dst);
    return read.lo >= read.hi;
  }
  bool operator()(const model::AlongAxes& map) const {
    const tensor::Range read = tensor::cells_of(model::rule_of(map, dim), range, src[dim], dst[dim]);
    return read.lo >= read.hi;
  }
  template <base::OneOf<model::NoSource, model::SameCells, model::UnderTransposedWindow, model::WholeSpace,
                        model::BroadcastCells, model::ShuffledChannels, model::CellBlocks, model::ConcatenatedChannels,
                        model::FlattenedChannels>
                Other>
  bool operator()(const Other&) const {
    return false;
  }
};

const char* adjective(Dim dim) { return dim == Dim::d ? "deep" : dim == Dim::h ? "high" : "wide"; }

}  // namespace

std::string counted(std::int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string to_text(const Misfit& misfit) {
  switch (misfit.kind) {
    case Misfit::Kind::samples:
      return fmt::format("{}, too few for n{}", counted(misfit.extent, "sample"), misfit.parts);
    case Misfit::Kind::channels:
      return fmt::format("{}, too few for {} parts", counted(misfit.extent, "channel"), misfit.parts);
    case Misfit::Kind::groups:
      return fmt::format("{} cannot be cut evenly into {} parts", counted(misfit.extent, "group"), misfit.parts);
    case Misfit::Kind::all_channels: return "all channels are needed in one place";
    case Misfit::Kind::no_space: return "there is no space to cut";
    case Misfit::Kind::space:
      return fmt::format("{} {}, too small for {}{}", counted(misfit.extent, "cell"), adjective(misfit.dim),
                         tensor::name_of(misfit.dim), misfit.parts);
    case Misfit::Kind::padding:
      return fmt::format("some of {}{} would see only padding", tensor::name_of(misfit.dim), misfit.parts);
  }
  return "";
}

bool sums_channels(const model::Op& op) { return computes(op) && groups_of(op) == 1; }

bool computes(const model::Op& op) { return model::traits_of(op).contraction.has_value(); }

std::int64_t groups_of(const model::Op& op) {
  return model::traits_of(op).contraction.value_or(model::Contraction{}).groups;
}

int padding_part(const model::Graph& graph, int node, Dim dim, int parts) {
  const model::Node& here = graph.nodes[static_cast<std::size_t>(node)];
  // A part with all cells of space sees some.
  if (here.srcs.empty() || parts == 1 || dim == Dim::n || dim == Dim::c) return -1;
  const model::OpTraits traits = model::traits_of(here.op);
  const tensor::Shape& src = graph.nodes[static_cast<std::size_t>(here.srcs.front())].shape;
  for (int part = 0; part < parts; ++part) {
    const tensor::Range range{tensor::block_begin(here.shape[dim], parts, part),
                              tensor::block_begin(here.shape[dim], parts, part + 1)};
    if (range.lo < range.hi && std::visit(ReadsNothing{dim, range, src, here.shape}, traits.reads)) return part;
  }
  return -1;
}

Fit::Fit(const model::Graph& graph, std::int64_t samples)
    : graph_(graph), samples_(samples), least_(graph.nodes.size(), tensor::cube(thinnest)) {
  for (const model::Node& reader : graph.nodes) {
    const model::OpTraits traits = model::traits_of(reader.op);
    for (const int src : reader.srcs) {
      for (const Dim dim : tensor::spatial_dims) {
        std::int64_t& least = least_[static_cast<std::size_t>(src)][dim];
        least = std::max(least, model::halo_width(traits.reads, dim));
      }
    }
  }
}

std::optional<Misfit> Fit::misfit(int node, const tensor::Grid& grid) const {
  if (samples_ < grid.n) return Misfit{Misfit::Kind::samples, Dim::n, samples_, grid.n};
  for (const Dim dim : tensor::spatial_dims) {
    if (const auto found = space_misfit(node, dim, grid[dim])) return found;
  }
  return channel_misfit(node, grid.c);
}

std::optional<Misfit> Fit::space_misfit(int node, Dim dim, int parts) const {
  if (parts == 1) return {};
  const tensor::Shape& shape = graph_.nodes[static_cast<std::size_t>(node)].shape;
  const Misfit misfit{Misfit::Kind::space, dim, shape[dim], parts};
  if (shape.d == 1 && shape.h == 1 && shape.w == 1) return Misfit{Misfit::Kind::no_space, dim, 1, parts};
  if (shape[dim] / parts < least_[static_cast<std::size_t>(node)][dim]) return misfit;
  if (padding_part(graph_, node, dim, parts) >= 0) return Misfit{Misfit::Kind::padding, dim, shape[dim], parts};
  return {};
}

std::optional<Misfit> Fit::channel_misfit(int node, int parts) const {
  if (parts == 1) return {};
  const model::Node& here = graph_.nodes[static_cast<std::size_t>(node)];
  const model::OpTraits traits = model::traits_of(here.op);
  const bool last = node + 1 == static_cast<int>(graph_.nodes.size());
  if (last || traits.needs_all_channels) {
    return Misfit{Misfit::Kind::all_channels, Dim::c, here.shape.c, parts};
  }
  if (const std::int64_t groups = groups_of(here.op); groups > 1 && groups % parts != 0) {
    return Misfit{Misfit::Kind::groups, Dim::c, groups, parts};
  }
  const bool flat = model::flattens_space(traits.reads);
  const std::int64_t channels = flat ? graph_.nodes[static_cast<std::size_t>(here.srcs.front())].shape.c : here.shape.c;
  if (channels < parts) return Misfit{Misfit::Kind::channels, Dim::c, channels, parts};
  return {};
}

int Fit::most_parts(int node, Dim dim) const {
  const std::int64_t extent = graph_.nodes[static_cast<std::size_t>(node)].shape[dim];
  auto parts = static_cast<int>(std::min<std::int64_t>(extent / least_[static_cast<std::size_t>(node)][dim], 1 << 20));
  while (parts > 1 && space_misfit(node, dim, parts)) --parts;
  return std::max(parts, 1);
}

}  // namespace orthant::plan
