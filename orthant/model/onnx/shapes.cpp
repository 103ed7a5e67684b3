#include "orthant/model/onnx/fold.hpp"
#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/node_view.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace orthant::model::onnx {

using base::Exit;
using base::fail;
using tensor::Dim;
using tensor::Shape;

namespace {

std::vector<const Constant*> constants_of(const std::vector<const Value*>& arguments) {
  std::vector<const Constant*> constants;
  for (const Value* value : arguments) constants.push_back(value == nullptr ? nullptr : std::get_if<Constant>(value));
  return constants;
}

View with_extents(const View& source, const Extents& extents) {
  const std::optional<View> result = reshaped(source, extents);
  if (!result) fail(Exit::bad_data, "a reshape that mixes samples, channels and space is not supported");
  return *result;
}

}  // namespace

std::optional<View> Importer::plain(const View& source) {
  const int rank = static_cast<int>(source.dims.size());
  if (rank < 2 || rank > 5) return std::nullopt;
  const Shape& whole = shape(source.item);
  View wanted = plain_view(source.item, whole, rank);
  std::size_t atoms = 0;
  for (const Dim dim : tensor::all_dims) atoms += whole_axis(whole, dim).size();
  std::size_t named = 0;
  for (const Atoms& dim : wanted.dims) named += dim.size();
  if (named == atoms && wanted.dims == source.dims) return wanted;
  if (source.dims[0] != whole_axis(whole, Dim::n)) return std::nullopt;
  if (rank == 2) {
    Atoms flat = whole_axis(whole, Dim::c);
    for (const Dim dim : tensor::spatial_dims) {
      for (const Atom& atom : whole_axis(whole, dim)) flat.push_back(atom);
    }
    if (source.dims[1] != flat) return std::nullopt;
    const int item = put(Op(Flatten{}), {source.item});
    return plain_view(item, shape(item), rank);
  }
  return moved(source);
}

View Importer::slice(const View& source, std::size_t dim, std::int64_t first, std::int64_t count, std::int64_t step) {
  const Atoms& atoms = source.dims[dim];
  const std::int64_t extent = extent_of(atoms);
  if (count < 1) fail(Exit::bad_data, "nothing is left of {} items", extent);
  if (step < 1) fail(Exit::bad_data, "a step of {}; only forward steps are supported", step);
  if (count == extent && step == 1) return source;
  const Shape& whole = shape(source.item);
  if (atoms.size() != 1 || atoms.front().axis == Dim::n || (count > 1 && step != 1 && atoms.front().axis == Dim::c))
    fail(Exit::bad_data, "a slice of samples, of dims that were joined or of every second channel is not supported");
  const Atom atom = atoms.front();
  if (atom.extent * atom.step != whole[atom.axis] || (atom.axis != Dim::c && atom.step != 1))
    fail(Exit::bad_data, "a slice of a part of a dim is not supported");
  Slice op;
  if (atom.axis == Dim::c) {
    op.first_channel = first * atom.step;
    op.channels = count * atom.step;
  } else {
    op.first[atom.axis] = first;
    op.size[atom.axis] = count;
    op.step[atom.axis] = step;
  }
  View result{put(Op(op), {source.item}), source.dims};
  result.dims[dim] = count == 1 ? Atoms{} : Atoms{{atom.axis, count, atom.step}};
  return result;
}

Value Importer::gather(const OpNode& node, const Arguments& arguments) {
  const View& source = view(arguments, 0);
  const Constant& which = constant(arguments, 1);
  const auto dim = static_cast<std::size_t>(dim_of(integer_of(node, "axis", 0), source.dims.size()));
  const std::int64_t extent = extent_of(source.dims[dim]);
  Extents indices = integers_of(which);
  for (std::int64_t& index : indices) {
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) fail(Exit::bad_data, "item {} of {} is taken", index, extent);
  }
  if (indices.empty() || which.extents.size() > 1) fail(Exit::bad_data, "items by a table are not supported");
  for (std::size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] != indices[i - 1] + 1)
      fail(Exit::bad_data, "items in another order are not supported; take neighbours");
  }
  View result = slice(source, dim, indices.front(), static_cast<std::int64_t>(indices.size()), 1);
  if (which.extents.empty()) result.dims.erase(result.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return result;
}

Value Importer::expand(const View& source, const Extents& target) {
  if (target.size() > most_dims) fail(Exit::bad_data, "a tensor of {} dims", target.size());
  View raised = source;
  while (raised.dims.size() < target.size()) raised.dims.insert(raised.dims.begin(), Atoms{});
  Extents extents = extents_of(raised);
  bool same = true;
  for (std::size_t i = 0; i < target.size(); ++i) {
    std::int64_t& extent = extents[extents.size() - 1 - i];
    const std::int64_t wanted = target[target.size() - 1 - i];
    if (wanted != 1 && wanted != extent) {
      if (extent != 1) fail(Exit::bad_data, "extents {} and {} do not broadcast", extent, wanted);
      extent = wanted;
      same = false;
    }
  }
  if (same) return raised;
  const std::optional<View> found = plain(raised);
  const auto rank = static_cast<int>(extents.size());
  if (!found || rank != spatial_count_ + 2) fail(Exit::bad_data, "only one cell of space can be repeated");
  Shape wanted = shape(found->item);
  const std::vector<Dim> axes = axes_of_rank(rank);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i < 2 && extents[i] != wanted[axes[i]])
      fail(Exit::bad_data, "samples or channels are repeated; only space can be");
    wanted[axes[i]] = extents[i];
  }
  const int item = spread_cells(found->item, wanted);
  return plain_view(item, shape(item), rank);
}

Value Importer::concat(const OpNode& node, const Arguments& arguments) {
  std::vector<View> sources;
  for (std::size_t i = 0; i < arguments.size(); ++i) sources.push_back(view(arguments, i));
  if (sources.empty()) fail(Exit::bad_data, "there is nothing to join");
  if (sources.size() == 1) return sources.front();
  const auto dim = static_cast<std::size_t>(dim_of(integer_of(node, "axis", 0), sources.front().dims.size()));
  const auto alike = [&](const View& a, const View& b) {
    if (a.dims.size() != b.dims.size()) return false;
    for (std::size_t i = 0; i < a.dims.size(); ++i) {
      if (i != dim && a.dims[i] != b.dims[i]) return false;
    }
    return true;
  };
  const auto by_channels = [&] {
    bool alone = true;
    for (const View& one : sources) {
      const Atoms channels = whole_axis(shape(one.item), Dim::c);
      if (!alike(one, sources.front()) || one.dims[dim] != channels) return false;
      alone = alone && channels.empty();
    }
    return !alone || dim == 1;
  };
  const auto srcs = [&] {
    std::vector<int> items;
    for (const View& one : sources) items.push_back(one.item);
    return items;
  };
  // A stack: a new dim, which counts the tensors.
  const auto stacked = [&] {
    return std::all_of(sources.begin(), sources.end(), [&](const View& one) {
      return alike(one, sources.front()) && one.dims[dim].empty() && shape(one.item) == shape(sources.front().item);
    });
  };
  if (!by_channels() && !stacked()) {
    for (View& one : sources) one = plain(one).value_or(one);
  }
  View result = sources.front();
  if (by_channels()) {
    result.item = put(Op(Concat{}), srcs());
    result.dims[dim] = whole_axis(shape(result.item), Dim::c);
    return result;
  }
  if (!stacked())
    fail(Exit::bad_data, "tensors are joined along another dim than the channels; only channels are supported");
  const std::int64_t each = shape(result.item).c;
  result.item = put(Op(Concat{}), srcs());
  result.dims[dim] = {{Dim::c, static_cast<std::int64_t>(sources.size()), each}};
  return result;
}

Value Importer::depth_to_space(const OpNode& node, const Arguments& arguments) {
  const View source = plain_source(arguments, 0);
  const Extents have = extents_of(source);
  const std::int64_t block = integer_of(node, "blocksize", 0);
  if (spatial_count_ != 2 || block < 1 || block > 1 << 15 || have[1] % (block * block) != 0)
    fail(Exit::bad_data, "blocks of {} in {} channels", block, have[1]);
  const std::int64_t channels = have[1] / (block * block);
  const bool columns = text_of(node, "mode", "DCR") == "CRD";
  const View split = with_extents(source, columns ? Extents{have[0], channels, block, block, have[2], have[3]}
                                                  : Extents{have[0], block, block, channels, have[2], have[3]});
  const View turned = transposed(split, columns ? std::vector{0, 1, 4, 2, 5, 3} : std::vector{0, 3, 4, 1, 5, 2});
  return with_extents(turned, {have[0], channels, have[2] * block, have[3] * block});
}

Value Importer::space_to_depth(const OpNode& node, const Arguments& arguments) {
  const View source = plain_source(arguments, 0);
  const Extents have = extents_of(source);
  const std::int64_t block = integer_of(node, "blocksize", 0);
  if (spatial_count_ != 2 || block < 1 || have[2] % block != 0 || have[3] % block != 0)
    fail(Exit::bad_data, "blocks of {} in {}x{} cells", block, have[2], have[3]);
  const View split = with_extents(source, {have[0], have[1], have[2] / block, block, have[3] / block, block});
  return with_extents(transposed(split, {0, 3, 5, 1, 2, 4}),
                      {have[0], have[1] * block * block, have[2] / block, have[3] / block});
}

std::optional<std::vector<Value>> Importer::shape_op(const OpNode& node, const Arguments& arguments) {
  const std::string& op = node.op;
  if (arguments.empty() || !given(arguments, 0) || !std::holds_alternative<View>(*arguments[0])) return std::nullopt;
  const View& source = view(arguments, 0);
  const Extents extents = extents_of(source);
  const std::vector<const Constant*> constants = constants_of(arguments);
  const auto one = [](Value value) { return std::vector<Value>{std::move(value)}; };
  if (op == "Shape") {
    const auto rank = static_cast<std::int64_t>(extents.size());
    const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
    const std::int64_t first = place(integer_of(node, "start", 0));
    const std::int64_t end = std::max(first, place(integer_of(node, "end", rank)));
    return one(integers({extents.begin() + first, extents.begin() + end}));
  }
  if (op == "Size") return one(constant_of(ItemType::i64, {}, {static_cast<double>(item_count(extents))}));
  if (op == "Reshape") {
    const Extents target = file_.opset < 5 ? list_of(node, "shape") : integers_of(constant(arguments, 1));
    return one(with_extents(source, reshape_target(extents, target, integer_of(node, "allowzero", 0) != 0)));
  }
  if (op == "Flatten") {
    const std::int64_t axis = integer_of(node, "axis", 1);
    const int split =
        axis == static_cast<std::int64_t>(extents.size()) ? static_cast<int>(axis) : dim_of(axis, extents.size());
    return one(with_extents(source, {item_count({extents.begin(), extents.begin() + split}),
                                     item_count({extents.begin() + split, extents.end()})}));
  }
  if (op == "Squeeze") return one(with_extents(source, squeezed(extents, axes_of(node, constants, 1))));
  if (op == "Unsqueeze")
    return one(with_extents(source, unsqueezed(extents, axes_of(node, constants, 1).value_or(Extents{}))));
  if (op == "Transpose") {
    std::vector<int> permutation;
    for (const std::int64_t dim : list_of(node, "perm")) permutation.push_back(dim_of(dim, extents.size()));
    for (std::size_t i = extents.size(); permutation.size() < extents.size() && i-- > 0;)
      permutation.push_back(static_cast<int>(i));
    std::vector<int> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != static_cast<int>(i) || sorted.size() != extents.size())
        fail(Exit::bad_data, "perm is no permutation of the dims");
    }
    return one(transposed(source, permutation));
  }
  if (op == "Slice") {
    View result = source;
    for (const Cut& cut : cuts_of(node, constants, extents))
      result = slice(result, static_cast<std::size_t>(cut.dim), cut.first, cut.count, cut.step);
    return one(result);
  }
  if (op == "Split") {
    const auto dim = static_cast<std::size_t>(dim_of(integer_of(node, "axis", 0), extents.size()));
    std::vector<Value> parts;
    std::int64_t first = 0;
    for (const std::int64_t size : parts_of_split(node, constants.size() > 1 ? constants[1] : nullptr, extents[dim])) {
      parts.emplace_back(slice(source, dim, first, size, 1));
      first += size;
    }
    return parts;
  }
  if (op == "Gather") return one(gather(node, arguments));
  if (op == "Expand") return one(expand(source, integers_of(constant(arguments, 1))));
  if (op == "Tile") {
    Extents target = integers_of(constant(arguments, 1));
    if (target.size() != extents.size()) fail(Exit::bad_data, "a tile of {} dims of {}", target.size(), extents.size());
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (target[i] != 1 && extents[i] != 1) fail(Exit::bad_data, "only one cell can be repeated");
      target[i] = std::max(target[i], extents[i]);
    }
    return one(expand(source, target));
  }
  return std::nullopt;
}

const std::set<std::string>& supported_ops() {
  static const std::set<std::string> ops{"Add",
                                         "AveragePool",
                                         "BatchNormalization",
                                         "Bernoulli",
                                         "Cast",
                                         "CastLike",
                                         "Celu",
                                         "Clip",
                                         "Concat",
                                         "Conv",
                                         "ConvTranspose",
                                         "DepthToSpace",
                                         "Div",
                                         "Dropout",
                                         "Elu",
                                         "Erf",
                                         "Expand",
                                         "Flatten",
                                         "Floor",
                                         "Gather",
                                         "Gelu",
                                         "Gemm",
                                         "GlobalAveragePool",
                                         "GlobalMaxPool",
                                         "GroupNormalization",
                                         "HardSigmoid",
                                         "HardSwish",
                                         "Identity",
                                         "InstanceNormalization",
                                         "LayerNormalization",
                                         "LeakyRelu",
                                         "MatMul",
                                         "Max",
                                         "MaxPool",
                                         "Mean",
                                         "Min",
                                         "Mul",
                                         "Neg",
                                         "PRelu",
                                         "Pad",
                                         "Pow",
                                         "RandomUniform",
                                         "RandomUniformLike",
                                         "Reciprocal",
                                         "ReduceMax",
                                         "ReduceMean",
                                         "ReduceSum",
                                         "Relu",
                                         "Reshape",
                                         "Resize",
                                         "Selu",
                                         "Shape",
                                         "Sigmoid",
                                         "Size",
                                         "Slice",
                                         "Softmax",
                                         "SpaceToDepth",
                                         "Split",
                                         "Sqrt",
                                         "Squeeze",
                                         "Sub",
                                         "Sum",
                                         "Tanh",
                                         "Tile",
                                         "Transpose",
                                         "Unsqueeze",
                                         "Upsample"};
  return ops;
}

std::optional<std::vector<Value>> Importer::results_on_views(const OpNode& node, const Arguments& arguments) {
  using Make = Value (Importer::*)(const OpNode&, const Arguments&);
  static const std::map<std::string, Make> makers{{"Conv", &Importer::conv},
                                                  {"ConvTranspose", &Importer::conv_transpose},
                                                  {"MaxPool", &Importer::pool},
                                                  {"AveragePool", &Importer::pool},
                                                  {"GlobalAveragePool", &Importer::global_pool},
                                                  {"GlobalMaxPool", &Importer::global_pool},
                                                  {"Pad", &Importer::pad},
                                                  {"Resize", &Importer::resize},
                                                  {"Upsample", &Importer::resize},
                                                  {"Gemm", &Importer::gemm},
                                                  {"MatMul", &Importer::matmul},
                                                  {"BatchNormalization", &Importer::batch_norm},
                                                  {"InstanceNormalization", &Importer::instance_norm},
                                                  {"GroupNormalization", &Importer::group_norm},
                                                  {"LayerNormalization", &Importer::layer_norm},
                                                  {"PRelu", &Importer::prelu},
                                                  {"Softmax", &Importer::softmax},
                                                  {"ReduceMean", &Importer::reduce},
                                                  {"ReduceSum", &Importer::reduce},
                                                  {"ReduceMax", &Importer::reduce},
                                                  {"Concat", &Importer::concat},
                                                  {"DepthToSpace", &Importer::depth_to_space},
                                                  {"SpaceToDepth", &Importer::space_to_depth}};
  if (!supported_ops().contains(node.op)) return std::nullopt;
  if (const auto found = makers.find(node.op); found != makers.end())
    return std::vector<Value>{(this->*found->second)(node, arguments)};
  if (auto made = shape_op(node, arguments)) return made;
  if (auto made = binary(node, arguments)) return std::vector<Value>{std::move(*made)};
  if (auto made = unary(node, arguments)) return std::vector<Value>{std::move(*made)};
  return std::nullopt;
}

}  // namespace orthant::model::onnx
