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

/// Weights [features][items of a flattened tensor in any order] with the items in the model's order: c, d, h, w.
Constant in_order(const Constant& weight, const Atoms& atoms) {
  Extents split{weight.extents.front()};
  for (const Atom& atom : atoms) split.push_back(atom.extent);
  std::vector<int> order(atoms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const Atom& x = atoms[static_cast<std::size_t>(a)];
    const Atom& y = atoms[static_cast<std::size_t>(b)];
    return x.axis != y.axis ? x.axis < y.axis : x.step > y.step;
  });
  std::vector<int> permutation{0};
  for (const int one : order) permutation.push_back(one + 1);
  return transposed(reshaped(weight, split), permutation);
}

}  // namespace

/// `weight` is [features][items of the last dim].
Value Importer::dense(const View& source, const Constant& weight, const Constant* bias) {
  if (weight.extents.size() != 2)
    fail(Exit::bad_data, "its weights have {} dims; 2 are supported", weight.extents.size());
  const Shape whole = shape(source.item);
  const std::int64_t features = weight.extents.front();
  if (extent_of(source.dims.back()) != weight.extents.back())
    fail(Exit::bad_data, "its weights take {} items and the source has {}", weight.extents.back(),
         extent_of(source.dims.back()));
  if (bias != nullptr && item_count(bias->extents) != features)
    fail(Exit::bad_data, "its bias has {} items, not one per feature", item_count(bias->extents));
  std::vector<Binding> bindings{{Role::weight, weight, true}};
  if (bias != nullptr) bindings.push_back({Role::bias, *bias, true});
  const bool has_bias = bias != nullptr;
  View result = source;
  const bool vector = tensor::spatial(whole) == tensor::cube(1);
  if (source.dims.back() == whole_axis(whole, Dim::c)) {
    // A dense layer of every cell is a convolution of one tap.
    result.item = vector ? put(Op(Dense{.features = features, .bias = has_bias}), {source.item}, std::move(bindings))
                         : put(Op(Conv{.filters = features, .window = {}, .groups = 1, .bias = has_bias}),
                               {source.item}, std::move(bindings));
  } else {
    const bool flat = source.dims.size() == 2 && source.dims.front() == whole_axis(whole, Dim::n);
    if (!flat)
      fail(Exit::bad_data, "a dense layer over something else than channels or whole samples is not supported");
    bindings.front().constant = in_order(weight, source.dims.back());
    const int flattened = vector ? source.item : put(Op(Flatten{}), {source.item});
    result.item = put(Op(Dense{.features = features, .bias = has_bias}), {flattened}, std::move(bindings));
  }
  result.dims.back() = whole_axis(shape(result.item), Dim::c);
  return result;
}

Value Importer::gemm(const OpNode& node, const Arguments& arguments) {
  if (integer_of(node, "transA", 0) != 0) fail(Exit::bad_data, "a transposed source is not supported");
  if (number_of(node, "alpha", 1) != 1 || (given(arguments, 2) && number_of(node, "beta", 1) != 1))
    fail(Exit::bad_data, "alpha and beta other than 1 are not supported");
  Constant weight = constant(arguments, 1);
  if (weight.extents.size() == 2 && integer_of(node, "transB", 0) == 0) weight = transposed(weight, {1, 0});
  return dense(view(arguments, 0), weight, given(arguments, 2) ? &constant(arguments, 2) : nullptr);
}

Value Importer::matmul(const OpNode&, const Arguments& arguments) {
  const bool both = given(arguments, 0) && given(arguments, 1) && std::holds_alternative<View>(*arguments[0]) &&
                    std::holds_alternative<View>(*arguments[1]);
  if (both) fail(Exit::bad_data, "a product of two tensors of the network, as attention has it, is not supported");
  const Constant& weight = constant(arguments, 1);
  if (weight.extents.size() != 2)
    fail(Exit::bad_data, "its weights have {} dims; 2 are supported", weight.extents.size());
  return dense(view(arguments, 0), transposed(weight, {1, 0}), nullptr);
}

}  // namespace orthant::model::onnx
