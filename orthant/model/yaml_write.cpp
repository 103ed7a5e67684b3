#include "orthant/base/format.hpp"
#include "orthant/model/yaml.hpp"
#include "orthant/model/yaml_ops.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

using tensor::Extent3;
using tensor::Window;

/// Plain where YAML would read a plain word back as the same word.
std::string word(const std::string& name) {
  const char first = name.front();
  const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  const bool null = name == "null" || name == "Null" || name == "NULL";
  return letter && !null ? name : '"' + name + '"';
}

/// "3", or "[1, 3, 3]" where dims differ.
std::string extent_text(const Extent3& extent, int spatial_count) {
  std::vector<std::int64_t> values;
  for (const tensor::Dim dim : tensor::named_dims(spatial_count)) values.push_back(extent[dim]);
  const bool even = std::all_of(values.begin(), values.end(), [&](std::int64_t one) { return one == values.front(); });
  return even ? fmt::format("{}", values.front()) : fmt::format("[{}]", fmt::join(values, ", "));
}

std::string pad_text(const Window& window, int spatial_count) {
  if (window.pad_lo == window.pad_hi) return extent_text(window.pad_lo, spatial_count);
  std::vector<std::string> pairs;
  for (const tensor::Dim dim : tensor::named_dims(spatial_count))
    pairs.push_back(fmt::format("[{}, {}]", window.pad_lo[dim], window.pad_hi[dim]));
  return fmt::format("[{}]", fmt::join(pairs, ", "));
}

/// Appends the keys of one op that differ from their defaults.
struct Writer {
  int spatial_count;
  std::vector<std::string>& keys;

  template <class Value>
  void put(const char* key, const Value& value) const {
    keys.push_back(fmt::format("{}: {}", key, value));
  }
  template <class Value>
  void put_unless(const char* key, const Value& value, const Value& fallback) const {
    if (value != fallback) put(key, value);
  }

  [[nodiscard]] Extent3 even(std::int64_t value, std::int64_t depth) const {
    Extent3 extent = tensor::cube(depth);
    for (const tensor::Dim dim : tensor::named_dims(spatial_count)) extent[dim] = value;
    return extent;
  }

  void put_window(const Window& window, const Extent3& stride) const {
    put("kernel", extent_text(window.size, spatial_count));
    if (window.stride != stride) put("stride", extent_text(window.stride, spatial_count));
    if (window.dilation != even(1, 1)) put("dilation", extent_text(window.dilation, spatial_count));
    if (window.pad_lo != even(0, 0) || window.pad_hi != even(0, 0)) put("pad", pad_text(window, spatial_count));
  }

  template <class Weighted>
  void put_start(const Weighted& op) const {
    put_unless("bias", op.bias, true);
    if (op.init != Init::torch) put("init", init_words()[static_cast<std::size_t>(op.init)]);
    put_unless("bias_value", op.bias_value, 0.0);
  }

  void operator()(const Conv& op) const {
    put("filters", op.filters);
    put_window(op.window, even(1, 1));
    put_unless<std::int64_t>("groups", op.groups, 1);
    put_start(op);
  }
  void operator()(const ConvTranspose& op) const {
    put("filters", op.filters);
    put_window(op.window, even(1, 1));
    if (op.output_padding != even(0, 0)) put("output_padding", extent_text(op.output_padding, spatial_count));
    put_unless<std::int64_t>("groups", op.groups, 1);
    put_start(op);
  }
  void operator()(const Pool& op) const {
    put_window(op.window, op.window.size);
    if (op.kind == PoolKind::average) put_unless("count_include_pad", op.count_include_pad, true);
  }
  void operator()(const Dense& op) const {
    put("features", op.features);
    put_start(op);
  }
  void operator()(const BatchNorm& op) const {
    put_unless("epsilon", op.epsilon, BatchNorm{}.epsilon);
    put_unless("momentum", op.momentum, BatchNorm{}.momentum);
  }
  void operator()(const Activation& op) const {
    if (op.kind == ActivationKind::leaky_relu) put_unless("slope", op.slope, Activation{}.slope);
    if (op.kind == ActivationKind::elu) put_unless("alpha", op.slope, 1.0);
  }
  void operator()(const SampleNorm& op) const {
    if (op.kind == SampleNormKind::group) put("groups", op.groups);
    put_unless("epsilon", op.epsilon, SampleNorm{}.epsilon);
    put_unless("affine", op.affine, true);
  }
  void operator()(const PRelu& op) const {
    put_unless("shared", op.shared, false);
    put_unless("start", op.start, PRelu{}.start);
  }
  void operator()(const Affine& op) const {
    put_unless("bias", op.bias, true);
    put_unless("trainable", op.trainable, true);
    put_unless("weight_value", op.weight_value, 1.0);
    put_unless("bias_value", op.bias_value, 0.0);
  }
  void operator()(const Resize& op) const {
    if (op.mode != ResizeMode::nearest) put("mode", resize_words()[static_cast<std::size_t>(op.mode)]);
    put_unless("align_corners", op.align_corners, false);
    if (op.size != tensor::cube(0)) return put("size", extent_text(op.size, spatial_count));
    const std::vector<double> factors(op.factor.begin() + (3 - spatial_count), op.factor.end());
    put("factor", fmt::format("[{}]", fmt::join(factors, ", ")));
  }
  void operator()(const Slice& op) const {
    put_unless<std::int64_t>("first_channel", op.first_channel, 0);
    put_unless<std::int64_t>("channels", op.channels, 0);
    if (op.first != tensor::cube(0)) put("first", extent_text(op.first, spatial_count));
    if (op.size != tensor::cube(0)) put("size", extent_text(op.size, spatial_count));
    if (op.step != tensor::cube(1)) put("step", extent_text(op.step, spatial_count));
  }
  void operator()(const Pad& op) const {
    put("pad", pad_text(Window{.pad_lo = op.lo, .pad_hi = op.hi}, spatial_count));
    if (op.mode != PadMode::zeros) put("mode", pad_words()[static_cast<std::size_t>(op.mode)]);
  }
  void operator()(const Multiply&) const {}
  void operator()(const Scale& op) const {
    put("factor", op.factor);
    put_unless("offset", op.offset, 0.0);
  }
  void operator()(const ChannelShuffle& op) const { put("groups", op.groups); }
  void operator()(const PixelShuffle& op) const { put("factor", extent_text(op.factor, spatial_count)); }
  void operator()(const Dropout& op) const { put_unless("rate", op.rate, Dropout{}.rate); }
  void operator()(const Input&) const {}
  void operator()(const GlobalAveragePool&) const {}
  void operator()(const GlobalMaxPool&) const {}
  void operator()(const Softmax&) const {}
  void operator()(const Add&) const {}
  void operator()(const Concat&) const {}
  void operator()(const Flatten&) const {}
};

std::string from_text(const Graph& graph, const Node& node) {
  std::vector<std::string> names;
  for (const int src : node.srcs) names.push_back(word(graph.nodes[src].name));
  if (names.size() == 1) return names.front();
  return fmt::format("[{}]", fmt::join(names, ", "));
}

std::string layer_text(const Graph& graph, int index) {
  const Node& node = graph.nodes[index];
  std::vector<std::string> keys{"name: " + word(node.name), fmt::format("op: {}", name_of(node.op))};
  if (node.srcs != std::vector<int>{index - 1}) keys.push_back("from: " + from_text(graph, node));
  std::visit(Writer{graph.spatial_count, keys}, node.op);
  return fmt::format("  - {{{}}}\n", fmt::join(keys, ", "));
}

std::string loss_text(const Loss& loss) {
  if (loss.terms.size() == 1 && loss.terms.front().weight == 1)
    return fmt::format("loss: {}\n", name_of(loss.terms.front().kind));
  std::string text = "loss:\n";
  for (const LossTerm& term : loss.terms)
    text += fmt::format("  - {{kind: {}, weight: {}}}\n", name_of(term.kind), term.weight);
  return text;
}

}  // namespace

std::string to_yaml(const Graph& graph) {
  const InputShape input{graph.nodes.front().shape, graph.spatial_count};
  std::string text = fmt::format("name: {}\ninput: {}\nlayers:\n", word(graph.name), input_text(input));
  for (int index = 1; index < static_cast<int>(graph.nodes.size()); ++index) text += layer_text(graph, index);
  text += loss_text(graph.loss);
  return text;
}

}  // namespace orthant::model
