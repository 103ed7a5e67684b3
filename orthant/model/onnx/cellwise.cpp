#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/node_view.hpp"
#include "orthant/model/onnx/patterns.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace orthant::model::onnx {

using base::Exit;
using base::fail;
using tensor::Dim;
using tensor::Shape;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Dims of one cell in front, as broadcasting has it.
void raise_rank(View& view, std::size_t rank) {
  while (view.dims.size() < rank) view.dims.insert(view.dims.begin(), Atoms{});
}

bool covers(const View& large, const View& small) {
  for (std::size_t i = 0; i < large.dims.size(); ++i) {
    if (!small.dims[i].empty() && small.dims[i] != large.dims[i]) return false;
  }
  return true;
}

/// True if every dim is the same or one cell of one of them.
bool align(const View& a, const View& b) {
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (!a.dims[i].empty() && !b.dims[i].empty() && a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

Constant negative(const Constant& constant) {
  std::vector<double> numbers = numbers_of(constant);
  for (double& one : numbers) one = -one;
  return constant_of(ItemType::f32, constant.extents, std::move(numbers));
}

Constant inverse(const Constant& constant) {
  std::vector<double> numbers = numbers_of(constant);
  for (double& one : numbers) one = 1 / one;
  return constant_of(ItemType::f32, constant.extents, std::move(numbers));
}

Constant ones(std::int64_t count) {
  return constant_of(ItemType::f32, {count}, std::vector<double>(static_cast<std::size_t>(count), 1.0));
}

}  // namespace

int Importer::scale(int item, double factor) {
  if (const auto* before = as<Scale>(item)) {
    factor *= before->factor;
    item = src(item);
  }
  if (std::abs(factor - 1) < 1e-12) return item;
  return put(Op(Scale{.factor = factor}), {item});
}

int Importer::add_number(int item, double number) {
  if (const Symbol* before = symbol(item, "add")) {
    number += before->number;
    item = src(item);
  }
  if (number == 0) return item;
  return put(Symbol{.op = "add", .number = number}, {item}, shape(item));
}

int Importer::activate(int item, ActivationKind kind, double slope) {
  if (kind == ActivationKind::relu6) {
    // Six times the hard sigmoid, as exporters write it.
    if (const Symbol* sum = symbol(item, "add"); sum != nullptr && sum->number == 3)
      return scale(activate(src(item), ActivationKind::hard_sigmoid), 6);
    if (const auto* inner = as<Activation>(item); inner != nullptr && inner->kind == ActivationKind::relu)
      item = src(item);
  }
  return put(Op(Activation{.kind = kind, .slope = slope}), {item});
}

int Importer::multiply(int a, int b) {
  if (const std::optional<int> found = Patterns{*this}.product(a, b)) return *found;
  return put(Op(Multiply{}), {a, b});
}

int Importer::divide(int a, int b) {
  if (const std::optional<int> found = Patterns{*this}.quotient(a, b)) return *found;
  return put(
      Symbol{.op = "div",
             .trouble = "a quotient of two tensors is not supported; multiply by a gate, or use a normalisation layer"},
      {a, b}, shape(a));
}

std::optional<std::size_t> Importer::channel_dim(const View& view) const {
  const Atoms channels = whole_axis(shape(view.item), Dim::c);
  if (channels.empty())
    return view.dims.size() > 1 && view.dims[1].empty() ? std::optional<std::size_t>(1) : std::nullopt;
  for (std::size_t i = 0; i < view.dims.size(); ++i) {
    if (view.dims[i] == channels) return i;
  }
  return std::nullopt;
}

std::optional<Constant> Importer::per_channel(const View& source, const Constant& constant) const {
  const std::optional<std::size_t> dim = channel_dim(source);
  const std::size_t rank = source.dims.size();
  if (!dim || constant.extents.size() > rank || *dim < rank - constant.extents.size()) return std::nullopt;
  const std::size_t first = rank - constant.extents.size();
  for (std::size_t i = 0; i < constant.extents.size(); ++i) {
    const std::int64_t wanted = first + i == *dim ? shape(source.item).c : 1;
    if (constant.extents[i] != wanted) return std::nullopt;
  }
  return reshaped(constant, {shape(source.item).c});
}

/// From one cell to those of `wanted`, along each dim.
int Importer::spread_cells(int item, const Shape& wanted) {
  Resize resize{.mode = ResizeMode::nearest, .size = tensor::spatial(wanted)};
  for (const Dim dim : tensor::spatial_dims) {
    if (shape(item)[dim] != 1 && shape(item)[dim] != wanted[dim])
      fail(Exit::bad_data, "{} cells do not spread to {}", shape(item)[dim], wanted[dim]);
  }
  if (tensor::spatial(shape(item)) == tensor::spatial(wanted)) return item;
  return put(Op(resize), {item});
}

Value Importer::with_channels(const std::string& op, const View& source, const Constant& constant) {
  const bool parameter = is_parameter(constant);
  if (!constant.computed_from.empty())
    fail(Exit::bad_data, "its numbers are computed from parameter '{}'; only parameters themselves are supported",
         constant.computed_from);
  const auto result = [&](int item) { return View{item, source.dims}; };
  const std::int64_t channels = shape(source.item).c;
  if (op == "Mul") {
    return result(put(Op(Affine{.bias = false, .trainable = parameter}), {source.item},
                      {{Parameter::Role::norm_weight, constant, parameter}}));
  }
  if (op == "Div" || op == "Sub") {
    if (parameter)
      remarks_.push_back(
          fmt::format("'{}' is a constant here and is not trained: it is subtracted or divided by", name_of(constant)));
    if (op == "Div")
      return result(put(Op(Affine{.bias = false, .trainable = false}), {source.item},
                        {{Parameter::Role::norm_weight, inverse(constant), false}}));
    return result(put(Op(Affine{.bias = true, .trainable = false}), {source.item},
                      {{Parameter::Role::norm_weight, ones(channels), false},
                       {Parameter::Role::norm_bias, negative(constant), false}}));
  }
  if (op != "Add") fail(Exit::bad_data, "{} with a number per channel is not supported", op);
  const Item& before = items_[static_cast<std::size_t>(source.item)];
  if (const auto* affine = as<Affine>(source.item);
      affine != nullptr && !affine->bias && affine->trainable == parameter) {
    std::vector<Binding> bindings = before.bindings;
    bindings.push_back({Parameter::Role::norm_bias, constant, parameter});
    const int normed = before.srcs.front();
    if (const auto* norm = as<SampleNorm>(normed); norm != nullptr && !norm->affine && parameter) {
      SampleNorm whole = *norm;
      whole.affine = true;
      return result(put(Op(whole), {src(normed)}, std::move(bindings)));
    }
    return result(put(Op(Affine{.bias = true, .trainable = parameter}), before.srcs, std::move(bindings)));
  }
  const auto with_bias = [&](auto layer) {
    layer.bias = true;
    std::vector<Binding> bindings = before.bindings;
    bindings.push_back({Parameter::Role::bias, constant, true});
    return result(put(Op(layer), before.srcs, std::move(bindings)));
  };
  if (const auto* conv = as<Conv>(source.item); conv != nullptr && !conv->bias) return with_bias(*conv);
  if (const auto* conv = as<ConvTranspose>(source.item); conv != nullptr && !conv->bias) return with_bias(*conv);
  if (const auto* layer = as<Dense>(source.item); layer != nullptr && !layer->bias) return with_bias(*layer);
  if (parameter)
    fail(Exit::bad_data,
         "parameter '{}' is added to something else than a convolution, a dense layer or a normalisation; give the "
         "layer before it a bias",
         name_of(constant));
  return result(
      put(Op(Affine{.bias = true, .trainable = false}), {source.item},
          {{Parameter::Role::norm_weight, ones(channels), false}, {Parameter::Role::norm_bias, constant, false}}));
}

Value Importer::with_constant(const std::string& op, const View& given_source, const Constant& constant,
                              bool constant_first) {
  View source = given_source;
  raise_rank(source, constant.extents.size());
  const Extents have = extents_of(source);
  Extents wide = have;
  for (std::size_t i = 0; i < constant.extents.size(); ++i) {
    std::int64_t& extent = wide[wide.size() - 1 - i];
    const std::int64_t other = constant.extents[constant.extents.size() - 1 - i];
    if (extent == 1) extent = other;
    if (other != 1 && other != extent) fail(Exit::bad_data, "extents {} and {} do not broadcast", extent, other);
  }
  if (wide != have) {
    const Value grown = expand(source, wide);
    source = std::get<View>(grown);
  }
  const auto result = [&](int item) { return View{item, source.dims}; };
  const int item = source.item;
  const std::optional<double> number = parameter_name(constant).empty() ? single_number(constant) : std::nullopt;
  if (number) {
    if (op == "Add") return result(add_number(item, *number));
    if (op == "Sub") return result(constant_first ? add_number(scale(item, -1), *number) : add_number(item, -*number));
    if (op == "Mul") return result(scale(item, *number));
    if (op == "Div" && !constant_first) return result(scale(item, 1 / *number));
    if (op == "Div")
      return result(scale(
          put(Symbol{.op = "reciprocal", .trouble = "a quotient by a tensor is not supported"}, {item}, shape(item)),
          *number));
    if (op == "Pow" && !constant_first && *number == 2) return result(multiply(item, item));
    if (op == "Pow" && !constant_first && *number == 1) return result(item);
    if (op == "Pow" && !constant_first && *number == 0.5)
      return result(put(Symbol{.op = "sqrt", .trouble = "square roots are not supported"}, {item}, shape(item)));
    if (op == "Max" && *number == 0) return result(activate(item, ActivationKind::relu));
    const auto* inner = as<Activation>(item);
    if (op == "Min" && *number == 6 && inner != nullptr && inner->kind == ActivationKind::relu)
      return result(activate(item, ActivationKind::relu6));
    fail(Exit::bad_data, "{} with the number {} is not supported", op, *number);
  }
  if (item_count(constant.extents) == 1 && shape(item).c > 1)
    fail(Exit::bad_data, "parameter '{}' is one number for all channels; give it one per channel",
         parameter_name(constant));
  const std::optional<Constant> channels = per_channel(source, constant);
  if (!channels)
    fail(Exit::bad_data, "{} with a constant that is neither one number nor one per channel; only those are supported",
         op);
  if (constant_first && op == "Sub") return with_channels("Add", result(scale(item, -1)), *channels);
  if (constant_first && op == "Div") fail(Exit::bad_data, "a quotient by a tensor is not supported");
  return with_channels(op, source, *channels);
}

Value Importer::of_two(const std::string& op, View a, View b) {
  const std::size_t rank = std::max(a.dims.size(), b.dims.size());
  raise_rank(a, rank);
  raise_rank(b, rank);
  if (!align(a, b)) {
    const std::optional<View> plain_a = plain(a);
    const std::optional<View> plain_b = plain(b);
    if (!plain_a || !plain_b || !align(*plain_a, *plain_b))
      fail(Exit::bad_data, "{} of two tensors whose dims are ordered differently; permute or reshape them alike", op);
    a = *plain_a;
    b = *plain_b;
  }
  // Both one cell where the other has many: spread the first.
  Shape common = shape(a.item);
  for (const Dim dim : tensor::all_dims) common[dim] = std::max(common[dim], shape(b.item)[dim]);
  std::vector<Atoms> dims = a.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].empty()) dims[i] = b.dims[i];
  }
  const auto result = [&](int item) { return View{item, dims}; };
  if (op == "Sub") {
    return result(put(Symbol{.op = "sub"}, {a.item, b.item}, common));
  }
  if (op == "Div") {
    if (!covers(a, b)) fail(Exit::bad_data, "a quotient that is larger than what is divided is not supported");
    return result(divide(a.item, b.item));
  }
  if (op == "Mul") {
    if (!covers(a, b)) std::swap(a, b);
    if (!covers(a, b)) a.item = spread_cells(a.item, common);
    if (shape(a.item) != common) std::swap(a, b);
    if (shape(a.item) != common)
      fail(Exit::bad_data, "a product of {} and {} is not supported; one of them must have all channels",
           tensor::to_text(shape(a.item)), tensor::to_text(shape(b.item)));
    const Shape& gate = shape(b.item);
    const bool part = tensor::spatial(gate) != tensor::spatial(common) && tensor::spatial(gate) != tensor::cube(1);
    return result(multiply(a.item, part ? spread_cells(b.item, common) : b.item));
  }
  if (op == "Add") {
    if (shape(a.item).c != common.c || shape(b.item).c != common.c)
      fail(Exit::bad_data, "a sum of tensors of {} and {} channels is not supported; give them as many",
           shape(a.item).c, shape(b.item).c);
    return result(put(Op(Add{}), {spread_cells(a.item, common), spread_cells(b.item, common)}));
  }
  fail(Exit::bad_data, "{} of two tensors is not supported", op);
}

std::optional<Value> Importer::binary(const OpNode& node, const Arguments& arguments) {
  const std::string& op = node.op;
  const bool sum = op == "Sum" || op == "Mean";
  if (op == "Pow" && given(arguments, 1) && std::holds_alternative<Constant>(*arguments[1]) &&
      item_count(constant(arguments, 1).extents) != 1)
    fail(Exit::bad_data, "powers by more than one number are not supported");
  if (!sum && op != "Add" && op != "Sub" && op != "Mul" && op != "Div" && op != "Pow" && op != "Min" && op != "Max")
    return std::nullopt;
  if (arguments.empty() || !given(arguments, 0)) fail(Exit::bad_data, "an input is missing");
  const std::string word = sum ? "Add" : op;
  Value result = *arguments.front();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!given(arguments, i)) fail(Exit::bad_data, "input {} is missing", i);
    const auto* a = std::get_if<View>(&result);
    const auto* b = std::get_if<View>(arguments[i]);
    const auto* known = std::get_if<Constant>(&result);
    const auto* other = std::get_if<Constant>(arguments[i]);
    if (a != nullptr && b != nullptr) {
      result = of_two(word, *a, *b);
    } else if (a != nullptr && other != nullptr) {
      result = with_constant(word, *a, *other, false);
    } else if (known != nullptr && b != nullptr) {
      result = with_constant(word, *b, *known, true);
    } else {
      fail(Exit::bad_data, "constants among its inputs are not supported");
    }
  }
  if (op == "Mean") {
    const View& total = std::get<View>(result);
    result = View{scale(total.item, 1.0 / static_cast<double>(arguments.size())), total.dims};
  }
  return result;
}

std::optional<Value> Importer::clip(const OpNode& node, const Arguments& arguments) {
  double lo = number_of(node, "min", -infinity);
  double hi = number_of(node, "max", infinity);
  if (given(arguments, 1)) lo = single_number(constant(arguments, 1)).value_or(lo);
  if (given(arguments, 2)) hi = single_number(constant(arguments, 2)).value_or(hi);
  if (lo < -3e38) lo = -infinity;
  if (hi > 3e38) hi = infinity;
  const View& source = view(arguments, 0);
  const auto result = [&](int item) { return Value(View{item, source.dims}); };
  const auto* inner = as<Activation>(source.item);
  const bool positive = inner != nullptr && inner->kind == ActivationKind::relu;
  if (lo == -infinity && hi == infinity) return source;
  if (hi == 6 && (lo == 0 || (lo == -infinity && positive)))
    return result(activate(source.item, ActivationKind::relu6));
  if (lo == 0 && hi == infinity) return result(activate(source.item, ActivationKind::relu));
  if (lo == 0 && hi == 1) {
    // The hard sigmoid spelt out.
    if (const Symbol* sum = symbol(source.item, "add"); sum != nullptr && sum->number == 0.5) {
      const auto* factor = as<Scale>(src(source.item));
      if (factor != nullptr)
        return result(activate(scale(src(src(source.item)), 6 * factor->factor), ActivationKind::hard_sigmoid));
    }
  }
  fail(Exit::bad_data, "a clip to {} ... {} is not supported; 0 ... 6 (ReLU6) and ReLU are", lo, hi);
}

std::optional<Value> Importer::unary(const OpNode& node, const Arguments& arguments) {
  const std::string& op = node.op;
  if (op == "Clip") return clip(node, arguments);
  if (op.starts_with("Random") || op == "Bernoulli") {
    const Shape sample = shape(0);
    const int item =
        put(Symbol{.op = "random", .trouble = "random numbers are supported only as drop path; use dropout"}, {},
            {sample.n, 1, 1, 1, 1});
    const auto* like = given(arguments, 0) ? std::get_if<View>(arguments[0]) : nullptr;
    std::size_t rank = like != nullptr ? like->dims.size() : list_of(node, "shape").size();
    if (like == nullptr && given(arguments, 0)) rank = constant(arguments, 0).extents.size();
    View random{item, std::vector<Atoms>(std::max<std::size_t>(rank, 1))};
    random.dims.front() = whole_axis(shape(item), Dim::n);
    return random;
  }
  static const std::map<std::string, ActivationKind> plain_ones{{"Relu", ActivationKind::relu},
                                                                {"Tanh", ActivationKind::tanh},
                                                                {"Sigmoid", ActivationKind::sigmoid},
                                                                {"HardSwish", ActivationKind::hard_swish}};
  static const std::map<std::string, const char*> symbols{
      {"Erf", "the error function is supported only as part of GELU"},
      {"Sqrt", "square roots are supported only in normalisations"},
      {"Reciprocal", "reciprocals are supported only in normalisations"},
      {"Floor", "rounding is supported only as part of drop path"}};
  if (arguments.empty() || !given(arguments, 0) || !std::holds_alternative<View>(*arguments[0])) return std::nullopt;
  const View& source = view(arguments, 0);
  const auto result = [&](int item) { return Value(View{item, source.dims}); };
  if (op == "Identity" || op == "Cast" || op == "CastLike") return source;
  if (op == "Dropout") {
    double rate = number_of(node, "ratio", 0.5);
    if (const Constant* ratio = constant_if(arguments, 1)) rate = single_number(*ratio).value_or(rate);
    const Constant* training = constant_if(arguments, 2);
    const bool trains = file_.opset < 12 || (training != nullptr && single_number(*training).value_or(0) != 0);
    if (!trains || rate == 0) return source;
    return result(put(Op(Dropout{.rate = rate}), {source.item}));
  }
  if (const auto found = plain_ones.find(op); found != plain_ones.end())
    return result(activate(source.item, found->second));
  if (op == "LeakyRelu")
    return result(activate(source.item, ActivationKind::leaky_relu, number_of(node, "alpha", 0.01)));
  if (op == "Elu" || op == "Celu") {
    const double alpha = number_of(node, "alpha", 1);
    if (op == "Celu" && alpha != 1) fail(Exit::bad_data, "CELU with alpha {} is not supported; use ELU", alpha);
    return result(activate(source.item, ActivationKind::elu, alpha));
  }
  if (op == "Selu") {
    const double alpha = number_of(node, "alpha", 1.67326319217681884765625);
    return result(
        scale(activate(source.item, ActivationKind::elu, alpha), number_of(node, "gamma", 1.05070102214813232421875)));
  }
  if (op == "HardSigmoid") {
    const double slope = number_of(node, "alpha", 0.2);
    const double beta = number_of(node, "beta", 0.5);
    if (std::abs(beta - 0.5) > 1e-6) fail(Exit::bad_data, "a hard sigmoid with beta {} is not supported; 0.5 is", beta);
    // Attributes are float32: one sixth is not exact.
    const double factor = std::abs(6 * slope - 1) < 1e-6 ? 1 : 6 * slope;
    return result(activate(scale(source.item, factor), ActivationKind::hard_sigmoid));
  }
  if (op == "Gelu") {
    if (text_of(node, "approximate", "none") != "none")
      fail(Exit::bad_data, "GELU by tanh is not supported; use approximate='none'");
    return result(activate(source.item, ActivationKind::gelu));
  }
  if (op == "Neg") return result(scale(source.item, -1));
  if (const auto found = symbols.find(op); found != symbols.end()) {
    std::string word = op;
    std::transform(word.begin(), word.end(), word.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    return result(put(Symbol{.op = word, .trouble = found->second}, {source.item}, shape(source.item)));
  }
  return std::nullopt;
}

}  // namespace orthant::model::onnx
