#include "orthant/model/onnx/fold.hpp"
#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/node_view.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>

namespace orthant::model::onnx {

using base::Exit;
using base::fail;
using tensor::Dim;
using tensor::Shape;
using Role = Parameter::Role;

namespace {

/// Tensors of a stack that is added up.
constexpr std::int64_t most_parts = 64;

/// True if it is nobody's parameter and all of it is `number`.
bool is_plain(const Constant& constant, double number) {
  return parameter_name(constant).empty() && single_number(constant) == number;
}

/// All atoms of some dims, those of an axis joined where they are all of it, in the order of the axes.
Atoms atoms_in(const View& view, const std::vector<std::size_t>& dims) {
  Atoms atoms;
  for (const std::size_t dim : dims) atoms.insert(atoms.end(), view.dims[dim].begin(), view.dims[dim].end());
  std::sort(atoms.begin(), atoms.end(),
            [](const Atom& a, const Atom& b) { return a.axis != b.axis ? a.axis < b.axis : a.step > b.step; });
  join(atoms);
  return atoms;
}

Atoms atoms_of_space(const Shape& shape) {
  Atoms atoms;
  for (const Dim dim : tensor::spatial_dims) {
    for (const Atom& atom : whole_axis(shape, dim)) atoms.push_back(atom);
  }
  return atoms;
}

Atoms with_channels_before(const Shape& shape) {
  Atoms atoms = whole_axis(shape, Dim::c);
  for (const Atom& atom : atoms_of_space(shape)) atoms.push_back(atom);
  return atoms;
}

}  // namespace

Value Importer::batch_norm(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const std::int64_t channels = shape(source.item).c;
  if (source.dims.size() < 2 || source.dims[1] != whole_axis(shape(source.item), Dim::c))
    fail(Exit::bad_data, "its dim 1 is not that of the channels");
  for (std::size_t i = 1; i < 5; ++i) {
    if (item_count(constant(arguments, i).extents) != channels)
      fail(Exit::bad_data, "input {} does not have an item per channel", i);
  }
  if (is_plain(constant(arguments, 1), 1) && is_plain(constant(arguments, 2), 0))
    fail(Exit::bad_data, "a batch normalisation without weights is not supported; use affine=True");
  const BatchNorm norm{.epsilon = number_of(node, "epsilon", 1e-5), .momentum = 1 - number_of(node, "momentum", 0.9)};
  // Attributes are float32, but people write 0.1.
  BatchNorm rounded = norm;
  rounded.momentum = static_cast<double>(static_cast<std::int64_t>(norm.momentum * 1e6 + 0.5)) * 1e-6;
  const int item = put(Op(rounded), {source.item},
                       {{Role::norm_weight, constant(arguments, 1), true},
                        {Role::norm_bias, constant(arguments, 2), true},
                        {Role::running_mean, constant(arguments, 3), false},
                        {Role::running_var, constant(arguments, 4), false}});
  return View{item, source.dims};
}

int Importer::sample_norm(int item, const SampleNorm& norm, const Constant* weight, const Constant* bias) {
  SampleNorm op = norm;
  const bool plain_weight = weight == nullptr || is_plain(*weight, 1);
  const bool plain_bias = bias == nullptr || is_plain(*bias, 0);
  op.affine = !plain_weight || !plain_bias;
  if (!op.affine) return put(Op(op), {item});
  if (weight == nullptr || bias == nullptr || item_count(weight->extents) != shape(item).c ||
      item_count(bias->extents) != shape(item).c)
    fail(Exit::bad_data, "a normalisation whose weight and bias are not one per channel is not supported");
  return put(Op(op), {item}, {{Role::norm_weight, *weight, true}, {Role::norm_bias, *bias, true}});
}

Value Importer::instance_norm(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const Shape& whole = shape(source.item);
  if (source.dims.size() < 2 || source.dims[0] != whole_axis(whole, Dim::n))
    fail(Exit::bad_data, "its dim 0 is not that of the samples");
  const Atoms& groups = source.dims[1];
  SampleNorm norm{
      .kind = SampleNormKind::instance, .groups = 1, .epsilon = number_of(node, "epsilon", 1e-5), .affine = false};
  const std::int64_t count = extent_of(groups);
  if (groups != whole_axis(whole, Dim::c)) {
    const bool outermost = groups.empty() || (groups.size() == 1 && groups.front().axis == Dim::c &&
                                              groups.front().step * count == whole.c);
    if (!outermost) fail(Exit::bad_data, "its dim 1 is neither that of the channels nor one of groups of them");
    norm.kind = SampleNormKind::group;
    norm.groups = count;
  }
  const Constant& weight = constant(arguments, 1);
  const Constant& bias = constant(arguments, 2);
  if (norm.kind == SampleNormKind::group && (!is_plain(weight, 1) || !is_plain(bias, 0)))
    fail(Exit::bad_data, "a weight per group of channels is not supported; use one per channel");
  return View{sample_norm(source.item, norm, &weight, &bias), source.dims};
}

Value Importer::group_norm(const OpNode& node, const Arguments& arguments) {
  const View source = plain_source(arguments, 0, true);
  const SampleNorm norm{.kind = SampleNormKind::group,
                        .groups = integer_of(node, "num_groups", 1),
                        .epsilon = number_of(node, "epsilon", 1e-5),
                        .affine = false};
  return View{sample_norm(source.item, norm, &constant(arguments, 1), &constant(arguments, 2)), source.dims};
}

Value Importer::layer_norm(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const int first = dim_of(integer_of(node, "axis", -1), source.dims.size());
  std::vector<std::size_t> dims;
  for (auto i = static_cast<std::size_t>(first); i < source.dims.size(); ++i) dims.push_back(i);
  const Atoms atoms = atoms_in(source, dims);
  SampleNorm norm{
      .kind = SampleNormKind::layer, .groups = 1, .epsilon = number_of(node, "epsilon", 1e-5), .affine = false};
  if (atoms != whole_axis(shape(source.item), Dim::c)) {
    if (atoms != with_channels_before(shape(source.item)))
      fail(Exit::bad_data, "it normalises over something else than the channels, or channels and space");
    norm.kind = SampleNormKind::group;
  }
  const Constant* bias = constant_if(arguments, 2);
  if (bias == nullptr && !is_plain(constant(arguments, 1), 1))
    fail(Exit::bad_data, "a layer normalisation without a bias is not supported");
  return View{sample_norm(source.item, norm, &constant(arguments, 1), bias), source.dims};
}

Value Importer::prelu(const OpNode&, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const Constant& slope = constant(arguments, 1);
  const bool shared = item_count(slope.extents) == 1 && shape(source.item).c > 1;
  std::optional<Constant> weight = shared ? std::optional(reshaped(slope, {1})) : per_channel(source, slope);
  // A weight per channel without dims behind it is that of the last dim in ONNX, but exporters of PyTorch mean
  // channels.
  if (!weight && item_count(slope.extents) == shape(source.item).c) weight = reshaped(slope, {shape(source.item).c});
  if (!weight) fail(Exit::bad_data, "its weights are neither one nor one per channel");
  return View{put(Op(PRelu{.shared = shared}), {source.item}, {{Role::norm_weight, *weight, true}}), source.dims};
}

Value Importer::softmax(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const int axis = dim_of(integer_of(node, "axis", file_.opset < 13 ? 1 : -1), source.dims.size());
  std::vector<std::size_t> dims{static_cast<std::size_t>(axis)};
  for (auto i = static_cast<std::size_t>(axis) + 1; file_.opset < 13 && i < source.dims.size(); ++i) dims.push_back(i);
  const Atoms channels = whole_axis(shape(source.item), Dim::c);
  if (atoms_in(source, dims) != channels)
    fail(Exit::bad_data, "a softmax over something else than the channels is not supported");
  return View{put(Op(Softmax{}), {source.item}), source.dims};
}

int Importer::mean_over_space(int item) {
  if (tensor::spatial(shape(item)) == tensor::cube(1)) return item;
  return put(Op(GlobalAveragePool{}), {item});
}

Value Importer::global_pool(const OpNode& node, const Arguments& arguments) {
  const View source = plain_source(arguments, 0);
  const int item = node.op == "GlobalMaxPool" ? max_over_space(source.item) : mean_over_space(source.item);
  return plain_view(item, shape(item), static_cast<int>(source.dims.size()));
}

/// Sums, means and maxima over space, over channels (for normalisations) or over a stack of tensors.
Value Importer::reduce(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const Shape whole = shape(source.item);
  std::vector<const Constant*> inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) inputs.push_back(constant_if(arguments, i));
  std::vector<std::size_t> dims;
  if (const std::optional<Extents> axes = axes_of(node, inputs, 1); axes && !axes->empty()) {
    for (const std::int64_t axis : *axes) dims.push_back(static_cast<std::size_t>(dim_of(axis, source.dims.size())));
  } else {
    for (std::size_t i = 0; i < source.dims.size(); ++i) dims.push_back(i);
  }
  std::sort(dims.begin(), dims.end());
  const Atoms atoms = atoms_in(source, dims);
  const bool mean = node.op == "ReduceMean";
  const bool sum = node.op == "ReduceSum";
  const Atoms channels = whole_axis(whole, Dim::c);
  int item = source.item;
  if (!atoms.empty() && atoms == atoms_of_space(whole)) {
    const double cells = static_cast<double>(tensor::pixels(whole) / whole.n);
    item = mean || sum ? mean_over_space(item) : max_over_space(item);
    if (sum) item = scale(item, cells);
  } else if (!atoms.empty() && (atoms == channels || atoms == with_channels_before(whole))) {
    const bool all = atoms != channels;
    const std::string word = mean ? "mean" : sum ? "sum" : "maximum";
    const Shape dst = all ? Shape{whole.n, 1, 1, 1, 1} : Shape{whole.n, 1, whole.d, whole.h, whole.w};
    item = put(Symbol{.op = word,
                      .axes = all ? std::vector{Dim::c, Dim::d, Dim::h, Dim::w} : std::vector{Dim::c},
                      .trouble = "over channels it is supported only in normalisations; use a convolution of one tap"},
               {item}, dst);
  } else if (atoms.size() == 1 && atoms.front().axis == Dim::c &&
             atoms.front().step * atoms.front().extent == whole.c && (mean || sum)) {
    const Atom& stack = atoms.front();
    if (stack.extent > most_parts)
      fail(Exit::bad_data, "a stack of {} tensors; at most {} are supported", stack.extent, most_parts);
    std::vector<int> parts;
    for (std::int64_t i = 0; i < stack.extent; ++i) {
      const bool joined =
          as<Concat>(item) != nullptr &&
          static_cast<std::int64_t>(items_[static_cast<std::size_t>(item)].srcs.size()) == stack.extent &&
          shape(src(item, static_cast<std::size_t>(i))).c == stack.step;
      parts.push_back(joined ? src(item, static_cast<std::size_t>(i))
                             : put(Op(Slice{.first_channel = i * stack.step, .channels = stack.step}), {item}));
    }
    item = put(Op(Add{}), parts);
    if (mean) item = scale(item, 1.0 / static_cast<double>(stack.extent));
  } else if (!atoms.empty()) {
    fail(Exit::bad_data, "only over all of space, over channels in normalisations, or over a stack is it supported");
  }
  View result{item, {}};
  for (std::size_t i = 0; i < source.dims.size(); ++i) {
    const bool gone = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (gone && integer_of(node, "keepdims", 1) == 0) continue;
    result.dims.push_back(gone ? Atoms{} : source.dims[i]);
  }
  return result;
}

}  // namespace orthant::model::onnx
