#include "orthant/engine/parameter_order.hpp"

#include <algorithm>
#include <cassert>

namespace orthant::engine {
namespace {

/// Files have [groups x O/g][I/g][taps], kernels [groups][taps][I/g][O/g].
struct ConvWeights {
  std::int64_t groups, filters, channels, taps;  // filters and channels per group
};

bool is_conv_weight(const model::Graph& graph, const model::Parameter& parameter) {
  const model::Op& op = graph.nodes[static_cast<std::size_t>(parameter.node)].op;
  return parameter.role == model::Parameter::Role::weight && !std::holds_alternative<model::Dense>(op);
}

ConvWeights conv_weights(const model::Graph& graph, const model::Parameter& parameter) {
  const model::Op& op = graph.nodes[static_cast<std::size_t>(parameter.node)].op;
  const auto* conv = std::get_if<model::Conv>(&op);
  const std::int64_t groups = conv ? conv->groups : std::get<model::ConvTranspose>(op).groups;
  const std::int64_t filters = parameter.extents[0] / groups;
  const std::int64_t channels = parameter.extents[1];
  return {groups, filters, channels, model::count(parameter) / (parameter.extents[0] * channels)};
}

/// Calls visit(index in file, index in memory) for every item.
template <class Visit>
void walk(const ConvWeights& weights, Visit visit) {
  const auto& [groups, filters, channels, taps] = weights;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t i = 0; i < channels; ++i) {
        for (std::int64_t o = 0; o < filters; ++o) {
          visit(((g * filters + o) * channels + i) * taps + t, ((g * taps + t) * channels + i) * filters + o);
        }
      }
    }
  }
}

}  // namespace

void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, std::span<const float> file,
                     std::span<float> memory) {
  assert(file.size() == memory.size());
  if (!is_conv_weight(graph, parameter)) {
    std::copy(file.begin(), file.end(), memory.begin());
    return;
  }
  walk(conv_weights(graph, parameter), [&](std::int64_t in_file, std::int64_t in_memory) {
    memory[static_cast<std::size_t>(in_memory)] = file[static_cast<std::size_t>(in_file)];
  });
}

void to_file_order(const model::Graph& graph, const model::Parameter& parameter, std::span<const float> memory,
                   std::span<float> file) {
  assert(file.size() == memory.size());
  if (!is_conv_weight(graph, parameter)) {
    std::copy(memory.begin(), memory.end(), file.begin());
    return;
  }
  walk(conv_weights(graph, parameter), [&](std::int64_t in_file, std::int64_t in_memory) {
    file[static_cast<std::size_t>(in_file)] = memory[static_cast<std::size_t>(in_memory)];
  });
}

}  // namespace orthant::engine
