#include "orthant/engine/parameter_order.hpp"

#include "orthant/model/traits.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

namespace orthant::engine {
namespace {

std::int64_t length_of(const tensor::Range& range) { return range.hi - range.lo; }

/// Groups of a convolution's weights, 0 for every other parameter: those keep the order of files.
std::int64_t conv_groups(const model::Graph& graph, const model::Parameter& parameter) {
  const model::OpTraits traits = model::traits_of(graph.nodes[static_cast<std::size_t>(parameter.node)].op);
  const bool conv = parameter.role == model::Parameter::Role::weight && model::window_of(traits.reads);
  return conv ? traits.contraction.value().groups : 0;
}

std::vector<std::int64_t> indices(const std::vector<tensor::Range>& ranges) {
  std::vector<std::int64_t> all;
  for (const tensor::Range& range : ranges) {
    for (std::int64_t i = range.lo; i < range.hi; ++i) all.push_back(i);
  }
  return all;
}

/// Calls visit(index in file, index in memory) for every item of the shard. Files have [first][second][taps], kernels
/// the same or, for convolutions, [groups][taps][second][first / groups].
template <class Visit>
void walk(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard, Visit visit) {
  const std::vector<std::int64_t> first = indices(shard.first);
  const bool one_dim = parameter.extents.size() == 1;
  const std::vector<std::int64_t> second = one_dim ? std::vector<std::int64_t>{0} : indices(shard.second);
  const std::int64_t second_extent = one_dim ? 1 : parameter.extents[1];
  const std::int64_t taps = model::count(parameter) / (parameter.extents[0] * second_extent);
  const std::int64_t groups = conv_groups(graph, parameter);
  const auto rows = static_cast<std::int64_t>(first.size());
  const auto columns = static_cast<std::int64_t>(second.size());
  const std::int64_t per_group = groups > 1 ? parameter.extents[0] / groups : rows;
  for (std::int64_t o = 0; o < rows; ++o) {
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::int64_t in_file =
          (first[static_cast<std::size_t>(o)] * second_extent + second[static_cast<std::size_t>(i)]) * taps;
      for (std::int64_t t = 0; t < taps; ++t) {
        const std::int64_t in_memory = groups > 0
                                           ? ((o / per_group * taps + t) * columns + i) * per_group + o % per_group
                                           : (o * columns + i) * taps + t;
        visit(static_cast<std::size_t>(in_file + t), static_cast<std::size_t>(in_memory));
      }
    }
  }
}

}  // namespace

void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     std::span<const float> file, std::span<float> memory) {
  walk(graph, parameter, shard, [&](std::size_t in_file, std::size_t in_memory) { memory[in_memory] = file[in_file]; });
}

void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   std::span<const float> memory, std::span<float> file) {
  walk(graph, parameter, shard, [&](std::size_t in_file, std::size_t in_memory) { file[in_file] = memory[in_memory]; });
}

void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     const tensor::Range& items, std::span<const float> file, std::span<float> memory) {
  walk(graph, parameter, shard, [&](std::size_t in_file, std::size_t in_memory) {
    const auto item = static_cast<std::int64_t>(in_memory);
    if (items.lo <= item && item < items.hi) memory[static_cast<std::size_t>(item - items.lo)] = file[in_file];
  });
}

void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   const tensor::Range& items, std::span<const float> memory, std::span<float> file) {
  walk(graph, parameter, shard, [&](std::size_t in_file, std::size_t in_memory) {
    const auto item = static_cast<std::int64_t>(in_memory);
    if (items.lo <= item && item < items.hi) file[in_file] = memory[static_cast<std::size_t>(item - items.lo)];
  });
}

ParameterBox whole_box(const model::Parameter& parameter) {
  const std::int64_t second = parameter.extents.size() == 1 ? 1 : parameter.extents[1];
  return {.first = {0, parameter.extents[0]},
          .second = {0, second},
          .taps = {0, model::count(parameter) / (parameter.extents[0] * second)}};
}

std::int64_t volume(const ParameterBox& box) {
  return length_of(box.first) * length_of(box.second) * length_of(box.taps);
}

bool overlap(const ParameterBox& a, const ParameterBox& b) {
  const auto meet = [](const tensor::Range& x, const tensor::Range& y) {
    return std::max(x.lo, y.lo) < std::min(x.hi, y.hi);
  };
  return meet(a.first, b.first) && meet(a.second, b.second) && meet(a.taps, b.taps);
}

KernelOrder::KernelOrder(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard)
    : first_(indices(shard.first)),
      second_(parameter.extents.size() == 1 ? std::vector<std::int64_t>{0} : indices(shard.second)),
      taps_(length_of(whole_box(parameter).taps)) {
  const std::int64_t groups = conv_groups(graph, parameter);
  const auto rows = static_cast<std::int64_t>(first_.size()), columns = static_cast<std::int64_t>(second_.size());
  conv_ = groups > 0;
  rows_per_group_ = std::max<std::int64_t>(groups > 1 ? parameter.extents[0] / groups : rows, 1);
  using Kind = Axis::Kind;
  order_ =
      conv_ ? std::array<Axis, 4>{{{Kind::group, rows / rows_per_group_},
                                   {Kind::tap, taps_},
                                   {Kind::column, columns},
                                   {Kind::row, rows_per_group_}}}
            : std::array<Axis, 4>{{{Kind::group, 1}, {Kind::row, rows}, {Kind::column, columns}, {Kind::tap, taps_}}};
}

/// A run of items as blocks of indices: from the slowest axis on, the indices that are there as a whole, and before and
/// after them those that are not.
void KernelOrder::split(std::size_t axis, const tensor::Range& items, Block block, std::vector<Block>& blocks) const {
  if (items.lo >= items.hi) return;
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < order_.size(); ++i) {
    inner *= order_.at(i).extent;
    block.along.at(i) = {0, order_.at(i).extent};
  }
  const auto inside = [&](std::int64_t index, const tensor::Range& rest) {
    block.along.at(axis) = {index, index + 1};
    split(axis + 1, rest, block, blocks);
  };
  const std::int64_t begin = (items.lo + inner - 1) / inner, end = items.hi / inner;
  if (begin > end) return inside(end, {items.lo - end * inner, items.hi - end * inner});
  if (items.lo < begin * inner) inside(begin - 1, {items.lo - (begin - 1) * inner, inner});
  if (begin < end) {
    for (std::size_t i = axis + 1; i < order_.size(); ++i) block.along.at(i) = {0, order_.at(i).extent};
    block.along.at(axis) = {begin, end};
    blocks.push_back(block);
  }
  if (items.hi > end * inner) inside(end, {0, items.hi - end * inner});
}

tensor::Range KernelOrder::along(const Block& block, Axis::Kind kind) const {
  for (std::size_t i = 0; i < order_.size(); ++i)
    if (order_.at(i).kind == kind) return block.along.at(i);
  return {};
}

/// Rows and columns that follow each other in the shard may lie apart in the file.
void KernelOrder::add_parts(const Block& block, std::vector<Part>& parts) const {
  const auto runs = [](const std::vector<std::int64_t>& indices, const tensor::Range& range) {
    std::vector<tensor::Range> found;
    for (std::int64_t i = range.lo; i < range.hi; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (found.empty() || indices[at] != indices[at - 1] + 1) found.push_back({i, i});
      ++found.back().hi;
    }
    return found;
  };
  const tensor::Range groups = along(block, Axis::Kind::group), rows = along(block, Axis::Kind::row);
  const std::vector<tensor::Range> columns = runs(second_, along(block, Axis::Kind::column));
  const bool whole_groups = length_of(rows) == rows_per_group_;
  for (std::int64_t group = groups.lo; group < groups.hi; ++group) {
    const std::int64_t last = whole_groups ? groups.hi - 1 : group;
    for (const tensor::Range& row :
         runs(first_, {group * rows_per_group_ + rows.lo, last * rows_per_group_ + rows.hi})) {
      for (const tensor::Range& column : columns) {
        const std::int64_t first = first_[static_cast<std::size_t>(row.lo)];
        const std::int64_t second = second_[static_cast<std::size_t>(column.lo)];
        parts.push_back({.box = {.first = {first, first + length_of(row)},
                                 .second = {second, second + length_of(column)},
                                 .taps = along(block, Axis::Kind::tap)},
                         .row = row.lo,
                         .column = column.lo});
      }
    }
    if (whole_groups) break;
  }
}

std::vector<KernelOrder::Part> KernelOrder::parts_of(const tensor::Range& items) const {
  std::vector<Block> blocks;
  split(0, items, {}, blocks);
  std::vector<Part> parts;
  for (const Block& block : blocks) add_parts(block, parts);
  return parts;
}

std::int64_t KernelOrder::item(std::int64_t row, std::int64_t column, std::int64_t tap) const {
  const auto columns = static_cast<std::int64_t>(second_.size());
  if (!conv_) return (row * columns + column) * taps_ + tap;
  return ((row / rows_per_group_ * taps_ + tap) * columns + column) * rows_per_group_ + row % rows_per_group_;
}

void KernelOrder::to_file_order(const Part& part, const tensor::Range& items, std::span<const float> memory,
                                std::span<float> file) const {
  std::size_t next = 0;
  for (std::int64_t row = 0; row < length_of(part.box.first); ++row) {
    for (std::int64_t column = 0; column < length_of(part.box.second); ++column) {
      for (std::int64_t tap = part.box.taps.lo; tap < part.box.taps.hi; ++tap)
        file[next++] = memory[static_cast<std::size_t>(item(part.row + row, part.column + column, tap) - items.lo)];
    }
  }
}

}  // namespace orthant::engine
