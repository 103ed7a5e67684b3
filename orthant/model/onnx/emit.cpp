#include "orthant/model/onnx/emit.hpp"

#include "orthant/model/onnx/constant.hpp"
#include "orthant/model/stored.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::model::onnx {

using tensor::Dim;
using wire::attribute;
using Extents = std::vector<std::int64_t>;
using Role = Parameter::Role;

/// One overload per op: the name of the result.
struct OpEmitter {
  Emitter& out;

  [[nodiscard]] const model::Node& node() const { return *out.node_; }
  [[nodiscard]] const tensor::Shape& src(std::size_t index = 0) const {
    return out.graph_.nodes[static_cast<std::size_t>(node().srcs[index])].shape;
  }
  [[nodiscard]] bool is_vector(std::size_t index = 0) const {
    return out.tensors_[static_cast<std::size_t>(node().srcs[index])].vector;
  }
  [[nodiscard]] const std::string& same(std::size_t index = 0) const {
    return out.tensors_[static_cast<std::size_t>(node().srcs[index])].name;
  }
  void mark_vector() const { out.tensors_.back().vector = true; }
  /// The result has the dims that its source has.
  void keep_rank() const {
    if (is_vector()) mark_vector();
  }

  [[nodiscard]] std::vector<std::string> window(const tensor::Window& window) const {
    Extents pads = out.space(window.pad_lo);
    const Extents above = out.space(window.pad_hi);
    pads.insert(pads.end(), above.begin(), above.end());
    return {attribute("kernel_shape", out.space(window.size)), attribute("strides", out.space(window.stride)),
            attribute("pads", pads)};
  }
  [[nodiscard]] Extents with_taps(std::int64_t a, std::int64_t b, const tensor::Extent3& size) const {
    Extents extents{a, b};
    for (const std::int64_t one : out.space(size)) extents.push_back(one);
    return extents;
  }

  std::string operator()(const Input&) const { return "input"; }
  std::string operator()(const Conv& op) const {
    std::vector<std::string> inputs{
        out.spatial(), out.parameter(Role::weight, with_taps(op.filters, src().c / op.groups, op.window.size))};
    if (op.bias) inputs.push_back(out.parameter(Role::bias, {op.filters}));
    std::vector<std::string> attributes = window(op.window);
    attributes.push_back(attribute("dilations", out.space(op.window.dilation)));
    attributes.push_back(attribute("group", op.groups));
    return out.put("Conv", inputs, attributes);
  }
  std::string operator()(const ConvTranspose& op) const {
    std::vector<std::string> inputs{
        out.spatial(), out.parameter(Role::weight, with_taps(src().c, op.filters / op.groups, op.window.size))};
    if (op.bias) inputs.push_back(out.parameter(Role::bias, {op.filters}));
    std::vector<std::string> attributes = window(op.window);
    attributes.push_back(attribute("dilations", out.space(op.window.dilation)));
    attributes.push_back(attribute("output_padding", out.space(op.output_padding)));
    attributes.push_back(attribute("group", op.groups));
    return out.put("ConvTranspose", inputs, attributes);
  }
  std::string operator()(const Pool& op) const {
    std::vector<std::string> attributes = window(op.window);
    if (op.kind == PoolKind::max) {
      attributes.push_back(attribute("dilations", out.space(op.window.dilation)));
      return out.put("MaxPool", {out.spatial()}, attributes);
    }
    attributes.push_back(attribute("count_include_pad", std::int64_t{op.count_include_pad ? 1 : 0}));
    return out.put("AveragePool", {out.spatial()}, attributes);
  }
  std::string operator()(const GlobalAveragePool&) const { return out.put("GlobalAveragePool", {out.spatial()}); }
  std::string operator()(const GlobalMaxPool&) const { return out.put("GlobalMaxPool", {out.spatial()}); }
  std::string operator()(const Dense& op) const {
    std::vector<std::string> inputs{out.vector(), out.parameter(Role::weight, {op.features, src().c})};
    if (op.bias) inputs.push_back(out.parameter(Role::bias, {op.features}));
    mark_vector();
    return out.put("Gemm", inputs, {attribute("transB", std::int64_t{1})});
  }
  std::string operator()(const BatchNorm& op) const {
    keep_rank();
    const Extents channels{src().c};
    return out.put("BatchNormalization",
                   {same(), out.parameter(Role::norm_weight, channels), out.parameter(Role::norm_bias, channels),
                    out.parameter(Role::running_mean, channels), out.parameter(Role::running_var, channels)},
                   {attribute("epsilon", op.epsilon), attribute("momentum", 1 - op.momentum)});
  }
  [[nodiscard]] std::string ones(std::int64_t count, float value) const {
    return out.constant({count}, std::vector<float>(static_cast<std::size_t>(count), value));
  }
  std::string operator()(const SampleNorm& op) const {
    const std::int64_t channels = src().c;
    const std::string epsilon = attribute("epsilon", op.epsilon);
    const auto weight = [&] { return op.affine ? out.parameter(Role::norm_weight, {channels}) : ones(channels, 1); };
    const auto bias = [&] { return op.affine ? out.parameter(Role::norm_bias, {channels}) : ones(channels, 0); };
    if (op.kind == SampleNormKind::instance)
      return out.put("InstanceNormalization", {out.spatial(), weight(), bias()}, {epsilon});
    if (op.kind == SampleNormKind::layer) return layer_norm(weight(), bias(), epsilon);
    const std::string grouped = out.put("Reshape", {out.spatial(), out.constant({0, op.groups, -1})});
    const std::string normed =
        out.put("InstanceNormalization", {grouped, ones(op.groups, 1), ones(op.groups, 0)}, {epsilon});
    const std::string whole = out.put("Reshape", {normed, out.constant(out.extents(src(), 0))});
    if (!op.affine) return whole;
    const Extents shape = out.channel_extents(false);
    const std::string scaled = out.put("Mul", {whole, out.parameter(Role::norm_weight, shape)});
    return out.put("Add", {scaled, out.parameter(Role::norm_bias, shape)});
  }
  [[nodiscard]] std::string layer_norm(const std::string& weight, const std::string& bias,
                                       const std::string& epsilon) const {
    const std::string axis = attribute("axis", std::int64_t{-1});
    if (is_vector()) {
      mark_vector();
      return out.put("LayerNormalization", {same(), weight, bias}, {axis, epsilon});
    }
    const std::int64_t rank = out.graph_.spatial_count + 2;
    Extents last{0};
    Extents back{0, rank - 1};
    for (std::int64_t i = 2; i < rank; ++i) last.push_back(i);
    for (std::int64_t i = 1; i < rank - 1; ++i) back.push_back(i);
    last.push_back(1);
    const std::string turned = out.put("Transpose", {out.spatial()}, {attribute("perm", last)});
    const std::string normed = out.put("LayerNormalization", {turned, weight, bias}, {axis, epsilon});
    return out.put("Transpose", {normed}, {attribute("perm", back)});
  }
  std::string operator()(const Activation& op) const {
    keep_rank();
    const std::string& x = same();
    switch (op.kind) {
      case ActivationKind::identity: return out.put("Identity", {x});
      case ActivationKind::relu: return out.put("Relu", {x});
      case ActivationKind::leaky_relu: return out.put("LeakyRelu", {x}, {attribute("alpha", op.slope)});
      case ActivationKind::tanh: return out.put("Tanh", {x});
      case ActivationKind::sigmoid: return out.put("Sigmoid", {x});
      case ActivationKind::relu6: return out.put("Clip", {x, out.number(0), out.number(6)});
      case ActivationKind::hard_sigmoid:
        return out.put("HardSigmoid", {x}, {attribute("alpha", 1.0 / 6), attribute("beta", 0.5)});
      case ActivationKind::elu: return out.put("Elu", {x}, {attribute("alpha", op.slope)});
      case ActivationKind::silu: return out.put("Mul", {x, out.put("Sigmoid", {x})});
      case ActivationKind::hard_swish: return out.put("HardSwish", {x});
      case ActivationKind::gelu: {
        const std::string inner = out.put("Erf", {out.put("Div", {x, out.number(std::sqrt(2.0))})});
        return out.put("Mul", {out.put("Mul", {x, out.put("Add", {inner, out.number(1)})}), out.number(0.5)});
      }
    }
    return x;
  }
  std::string operator()(const PRelu& op) const {
    keep_rank();
    const Extents shape = op.shared ? Extents{1} : out.channel_extents(is_vector());
    return out.put("PRelu", {same(), out.parameter(Role::norm_weight, shape)});
  }
  std::string operator()(const Affine& op) const {
    keep_rank();
    const Extents shape = out.channel_extents(is_vector());
    const std::string scaled = out.put("Mul", {same(), out.parameter(Role::norm_weight, shape)});
    return op.bias ? out.put("Add", {scaled, out.parameter(Role::norm_bias, shape)}) : scaled;
  }
  std::string operator()(const Softmax&) const {
    keep_rank();
    return out.put("Softmax", {same()}, {attribute("axis", std::int64_t{1})});
  }
  std::string operator()(const Scale& op) const {
    keep_rank();
    std::string x = same();
    if (op.factor != 1 || op.offset == 0) x = out.put("Mul", {x, out.number(op.factor)});
    return op.offset == 0 ? x : out.put("Add", {x, out.number(op.offset)});
  }
  std::string operator()(const Dropout&) const {
    keep_rank();
    return same();
  }
  /// All sources with as many dims: as they are if they are alike.
  [[nodiscard]] std::vector<std::string> all() const {
    bool vectors = true;
    for (std::size_t i = 0; i < node().srcs.size(); ++i) vectors = vectors && is_vector(i);
    if (vectors) mark_vector();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node().srcs.size(); ++i) names.push_back(vectors ? same(i) : out.spatial(i));
    return names;
  }
  std::string operator()(const Add&) const { return out.put(node().srcs.size() == 2 ? "Add" : "Sum", all()); }
  std::string operator()(const Multiply&) const { return out.put("Mul", all()); }
  std::string operator()(const Concat&) const { return out.put("Concat", all(), {attribute("axis", std::int64_t{1})}); }
  std::string operator()(const Resize& op) const {
    const bool by_size = op.size != tensor::cube(0);
    const bool linear = op.mode == ResizeMode::linear;
    std::vector<std::string> attributes{attribute("mode", std::string_view(linear ? "linear" : "nearest"))};
    const char* place = !linear ? "asymmetric" : op.align_corners ? "align_corners" : "half_pixel";
    attributes.push_back(attribute("coordinate_transformation_mode", std::string_view(place)));
    if (!linear) attributes.push_back(attribute("nearest_mode", std::string_view("floor")));
    if (by_size) {
      // Resize takes all extents or none; a slice keeps the number of samples open.
      const std::string shape = out.put("Shape", {out.spatial()});
      const std::string samples = out.put("Slice", {shape, out.constant({0}), out.constant({1})});
      Extents rest = out.extents(node().shape, 0);
      rest.erase(rest.begin());
      const std::string sizes = out.put("Concat", {samples, out.constant(rest)}, {attribute("axis", std::int64_t{0})});
      return out.put("Resize", {out.spatial(), "", "", sizes}, attributes);
    }
    std::vector<float> scales{1, 1};
    for (std::size_t i = op.factor.size() - static_cast<std::size_t>(out.graph_.spatial_count); i < op.factor.size();
         ++i)
      scales.push_back(static_cast<float>(op.factor.at(i)));
    return out.put("Resize", {out.spatial(), "", out.constant({static_cast<std::int64_t>(scales.size())}, scales)},
                   attributes);
  }
  std::string operator()(const Slice& op) const {
    const tensor::Shape& dst = node().shape;
    Extents starts{op.first_channel};
    Extents ends{op.first_channel + dst.c};
    Extents axes{1};
    Extents steps{1};
    for (const Dim dim : tensor::named_dims(out.graph_.spatial_count)) {
      starts.push_back(op.first[dim]);
      ends.push_back(op.first[dim] + (dst[dim] - 1) * op.step[dim] + 1);
      axes.push_back(axes.back() + 1);
      steps.push_back(op.step[dim]);
    }
    return out.put("Slice",
                   {out.spatial(), out.constant(starts), out.constant(ends), out.constant(axes), out.constant(steps)});
  }
  std::string operator()(const Pad& op) const {
    Extents pads{0, 0};
    for (const std::int64_t one : out.space(op.lo)) pads.push_back(one);
    pads.insert(pads.end(), {0, 0});
    for (const std::int64_t one : out.space(op.hi)) pads.push_back(one);
    const char* mode = op.mode == PadMode::zeros ? "constant" : op.mode == PadMode::reflect ? "reflect" : "edge";
    return out.put("Pad", {out.spatial(), out.constant(pads)}, {attribute("mode", std::string_view(mode))});
  }
  std::string operator()(const ChannelShuffle& op) const {
    Extents split = out.extents(src(), 0);
    split[1] = op.groups;
    split.insert(split.begin() + 2, src().c / op.groups);
    Extents order(split.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::swap(order[1], order[2]);
    return moved(split, order);
  }
  std::string operator()(const PixelShuffle& op) const {
    // Dims: samples, channels, then one or two per dim of space and the parts of channels that fill it.
    const auto dims = tensor::named_dims(out.graph_.spatial_count);
    const auto count = static_cast<std::int64_t>(dims.size());
    const tensor::Shape& small = op.to_channels ? node().shape : src();
    std::int64_t block = 1;
    for (const Dim dim : dims) block *= op.factor[dim];
    Extents split{0, op.to_channels ? src().c : src().c / block};
    Extents order{0, 1};
    if (op.to_channels) {
      for (const Dim dim : dims) split.insert(split.end(), {small[dim], op.factor[dim]});
      for (std::int64_t i = 0; i < count; ++i) order.push_back(3 + 2 * i);
      for (std::int64_t i = 0; i < count; ++i) order.push_back(2 + 2 * i);
    } else {
      for (const Dim dim : dims) split.push_back(op.factor[dim]);
      for (const Dim dim : dims) split.push_back(small[dim]);
      for (std::int64_t i = 0; i < count; ++i) order.insert(order.end(), {2 + count + i, 2 + i});
    }
    return moved(split, order);
  }
  [[nodiscard]] std::string moved(const Extents& split, const Extents& order) const {
    const std::string parts = out.put("Reshape", {out.spatial(), out.constant(split)});
    const std::string turned = out.put("Transpose", {parts}, {attribute("perm", order)});
    return out.put("Reshape", {turned, out.constant(out.extents(node().shape, 0))});
  }
  std::string operator()(const Flatten&) const {
    const std::string flat = out.vector();
    mark_vector();
    return flat;
  }
};

Emitter::Emitter(const Graph& graph) : graph_(graph) {
  taken_ = {"input", "output"};
  for (const Parameter& parameter : parameters(graph)) taken_.insert(parameter.name);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    node_ = &graph.nodes[i];
    index_ = static_cast<int>(i);
    tensors_.emplace_back();
    std::string name = std::visit(OpEmitter{*this}, node_->op);
    tensors_.back().name = std::move(name);
  }
  nodes_.push_back(wire::message(
      {.op = "Identity", .inputs = {tensors_.back().name}, .outputs = {"output"}, .attributes = {}}, "output"));
}

Extents Emitter::output_extents() const {
  const tensor::Shape& shape = graph_.nodes.back().shape;
  return tensors_.back().vector ? Extents{shape.n, shape.c} : extents(shape, shape.n);
}

std::string Emitter::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

std::string Emitter::put(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> attributes) {
  std::string result = fresh("/" + node_->name + "/" + op);
  nodes_.push_back(wire::message(
      {.op = op, .inputs = std::move(inputs), .outputs = {result}, .attributes = std::move(attributes)}, result));
  return result;
}

std::string Emitter::constant(const Extents& values) {
  std::string name = fresh("/" + node_->name + "/integers");
  constants_.push_back(wire::tensor(name, values));
  return name;
}

std::string Emitter::constant(const Extents& extents, const std::vector<float>& values) {
  std::string name = fresh("/" + node_->name + "/numbers");
  constants_.push_back(wire::tensor(name, extents, values));
  return name;
}

/// Files have it in their order: what lies otherwise is turned here.
std::string Emitter::parameter(Role role, const Extents& wanted) {
  const std::vector<Parameter> all = node_parameters(graph_, index_);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& one) { return one.role == role; });
  const Stored* stored = stored_of(graph_, *found);
  std::string name = found->name;
  Extents have = file_extents(graph_, *found);
  if (stored != nullptr && stored->strides != row_major(stored->view)) {
    Extents dims(stored->view.size());
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<std::int64_t>(i);
    std::stable_sort(dims.begin(), dims.end(), [&](std::int64_t a, std::int64_t b) {
      return stored->strides[static_cast<std::size_t>(a)] > stored->strides[static_cast<std::size_t>(b)];
    });
    Extents sorted;
    Extents back(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      sorted.push_back(stored->view[static_cast<std::size_t>(dims[i])]);
      back[static_cast<std::size_t>(dims[i])] = static_cast<std::int64_t>(i);
    }
    if (have != sorted) name = put("Reshape", {name, constant(sorted)});
    name = put("Transpose", {name}, {attribute("perm", back)});
    have = stored->view;
  }
  return have == wanted ? name : put("Reshape", {name, constant(wanted)});
}

std::string Emitter::spatial(std::size_t index) {
  const auto src = static_cast<std::size_t>(node_->srcs[index]);
  if (!tensors_[src].vector) return tensors_[src].name;
  return put("Reshape", {tensors_[src].name, constant(extents(graph_.nodes[src].shape, 0))});
}

std::string Emitter::vector(std::size_t index) {
  const auto src = static_cast<std::size_t>(node_->srcs[index]);
  if (tensors_[src].vector) return tensors_[src].name;
  return put("Flatten", {tensors_[src].name}, {attribute("axis", std::int64_t{1})});
}

Extents Emitter::extents(const tensor::Shape& shape, std::int64_t samples) const {
  Extents result{samples, shape.c};
  for (const Dim dim : tensor::named_dims(graph_.spatial_count)) result.push_back(shape[dim]);
  return result;
}

Extents Emitter::channel_extents(bool vector) const {
  Extents result{node_->shape.c};
  if (!vector) result.insert(result.end(), static_cast<std::size_t>(graph_.spatial_count), 1);
  return result;
}

Extents Emitter::space(const tensor::Extent3& extent) const {
  Extents result;
  for (const Dim dim : tensor::named_dims(graph_.spatial_count)) result.push_back(extent[dim]);
  return result;
}

}  // namespace orthant::model::onnx
