#include "orthant/engine/parameter_order.hpp"

#include "orthant/model/traits.hpp"

#include <cassert>
#include <vector>

namespace orthant::engine {
namespace {

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

}  // namespace orthant::engine
