#include "orthant/base/checked.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/model/stored.hpp"

namespace orthant::model {
namespace {

using Role = Parameter::Role;
using Extents = std::vector<std::int64_t>;

/// Appends the parameters of one node.
struct Collector {
  const Graph& graph;
  int index;
  std::vector<Parameter>& found;

  [[nodiscard]] std::int64_t src_channels() const { return graph.nodes[graph.nodes[index].srcs.front()].shape.c; }

  void put(const char* suffix, Role role, Extents extents, bool trainable = true) const {
    found.push_back({graph.nodes[index].name + suffix, index, role, std::move(extents), trainable});
    if (const Stored* stored = stored_of(graph, found.back())) found.back().name = stored->name;
  }

  [[nodiscard]] Extents with_taps(std::int64_t first, std::int64_t second, const tensor::Extent3& size) const {
    Extents extents{first, second};
    for (const tensor::Dim dim : tensor::named_dims(graph.spatial_count)) extents.push_back(size[dim]);
    return extents;
  }

  void operator()(const Conv& op) const {
    put(".weight", Role::weight, with_taps(op.filters, src_channels() / op.groups, op.window.size));
    if (op.bias) put(".bias", Role::bias, {op.filters});
  }
  void operator()(const ConvTranspose& op) const {
    put(".weight", Role::weight, with_taps(src_channels(), op.filters / op.groups, op.window.size));
    if (op.bias) put(".bias", Role::bias, {op.filters});
  }
  void operator()(const Dense& op) const {
    put(".weight", Role::weight, {op.features, src_channels()});
    if (op.bias) put(".bias", Role::bias, {op.features});
  }
  void operator()(const BatchNorm&) const {
    const Extents channels{src_channels()};
    put(".weight", Role::norm_weight, channels);
    put(".bias", Role::norm_bias, channels);
    put(".running_mean", Role::running_mean, channels, false);
    put(".running_var", Role::running_var, channels, false);
  }
  void operator()(const SampleNorm& op) const {
    if (!op.affine) return;
    put(".weight", Role::norm_weight, {src_channels()});
    put(".bias", Role::norm_bias, {src_channels()});
  }
  void operator()(const PRelu& op) const { put(".weight", Role::norm_weight, {op.shared ? 1 : src_channels()}); }
  void operator()(const Affine& op) const {
    put(".weight", Role::norm_weight, {src_channels()}, op.trainable);
    if (op.bias) put(".bias", Role::norm_bias, {src_channels()}, op.trainable);
  }
  void operator()(const Input&) const {}
  void operator()(const Pool&) const {}
  void operator()(const GlobalAveragePool&) const {}
  void operator()(const GlobalMaxPool&) const {}
  void operator()(const Activation&) const {}
  void operator()(const Softmax&) const {}
  void operator()(const Scale&) const {}
  void operator()(const Dropout&) const {}
  void operator()(const Add&) const {}
  void operator()(const Multiply&) const {}
  void operator()(const Resize&) const {}
  void operator()(const Slice&) const {}
  void operator()(const Pad&) const {}
  void operator()(const ChannelShuffle&) const {}
  void operator()(const PixelShuffle&) const {}
  void operator()(const Concat&) const {}
  void operator()(const Flatten&) const {}
};

}  // namespace

std::vector<Parameter> node_parameters(const Graph& graph, int node) {
  std::vector<Parameter> found;
  std::visit(Collector{graph, node, found}, graph.nodes[node].op);
  return found;
}

std::vector<Parameter> parameters(const Graph& graph) {
  std::vector<Parameter> found;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    std::visit(Collector{graph, node, found}, graph.nodes[node].op);
  }
  return found;
}

std::int64_t count(const Parameter& parameter) {
  std::int64_t product = 1;
  for (const std::int64_t extent : parameter.extents) product = base::checked_mul(product, extent);
  return product;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters(graph)) {
    if (parameter.trainable) sum = base::checked_add(sum, count(parameter));
  }
  return sum;
}

}  // namespace orthant::model
