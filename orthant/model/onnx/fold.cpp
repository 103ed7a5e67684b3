#include "orthant/model/onnx/fold.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/model/onnx/node_view.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;
using Inputs = std::vector<const Constant*>;
using Binary = std::function<double(double, double)>;
using Unary = std::function<double(double)>;

void check_size(const Extents& extents) {
  if (extents.size() > most_dims) fail(Exit::bad_data, "a tensor of {} dims", extents.size());
  const std::int64_t count = item_count(extents);
  if (count > most_folded_items)
    fail(Exit::bad_data, "a constant of {} items is computed; at most {} are supported", count, most_folded_items);
}

bool is_whole(ItemType type) {
  return type != ItemType::f32 && type != ItemType::f64 && type != ItemType::f16 && type != ItemType::bf16;
}

Constant made(const Inputs& inputs, ItemType type, Extents extents, std::vector<double> numbers) {
  Constant result = constant_of(type, std::move(extents), std::move(numbers));
  for (const Constant* one : inputs) {
    if (one != nullptr && result.computed_from.empty()) result.computed_from = parameter_name(*one);
  }
  return result;
}

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) fail(Exit::bad_data, "extents {} and {} do not broadcast", x, y);
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

/// The items of a tensor repeated to `extents`.
std::vector<double> spread(const std::vector<double>& numbers, const Extents& from, const Extents& extents) {
  Extents strides(extents.size(), 0);
  const Extents own = row_major(from);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[from.size() - 1 - i] != 1) strides[extents.size() - 1 - i] = own[own.size() - 1 - i];
  }
  const std::int64_t count = item_count(extents);
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(count));
  Extents position(extents.size(), 0);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(numbers.at(static_cast<std::size_t>(at)));
    for (std::size_t dim = extents.size(); dim-- > 0;) {
      at += strides[dim];
      if (++position[dim] < extents[dim]) break;
      at -= strides[dim] * extents[dim];
      position[dim] = 0;
    }
  }
  return result;
}

double quotient(double a, double b, bool whole) {
  if (!whole) return a / b;
  if (b == 0) fail(Exit::bad_data, "a whole number divided by zero");
  return std::trunc(a / b);
}

double remainder_of(double a, double b, bool as_c) {
  if (b == 0) fail(Exit::bad_data, "a remainder of a division by zero");
  const double rest = std::fmod(a, b);
  return !as_c && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::optional<Constant> fold_binary(const OpNode& node, const Inputs& inputs) {
  static const std::map<std::string, Binary> arithmetic{{"Add", [](double a, double b) { return a + b; }},
                                                        {"Sub", [](double a, double b) { return a - b; }},
                                                        {"Mul", [](double a, double b) { return a * b; }},
                                                        {"Pow", [](double a, double b) { return std::pow(a, b); }},
                                                        {"Min", [](double a, double b) { return std::min(a, b); }},
                                                        {"Max", [](double a, double b) { return std::max(a, b); }}};
  static const std::map<std::string, Binary> comparisons{
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }}};
  Binary compute;
  ItemType type = inputs.empty() || inputs[0] == nullptr ? ItemType::undefined : inputs[0]->type;
  const bool whole = is_whole(type);
  const bool as_c = integer_of(node, "fmod", 0) != 0;
  if (const auto found = arithmetic.find(node.op); found != arithmetic.end()) {
    compute = found->second;
  } else if (const auto comparison = comparisons.find(node.op); comparison != comparisons.end()) {
    compute = comparison->second;
    type = ItemType::boolean;
  } else if (node.op == "Div") {
    compute = [whole](double a, double b) { return quotient(a, b, whole); };
  } else if (node.op == "Mod") {
    compute = [as_c](double a, double b) { return remainder_of(a, b, as_c); };
  } else {
    return std::nullopt;
  }
  std::vector<double> result = numbers_of(input(inputs, 0));
  Extents extents = input(inputs, 0).extents;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Extents common = broadcast(extents, input(inputs, i).extents);
    check_size(common);
    result = spread(result, extents, common);
    const std::vector<double> other = spread(numbers_of(input(inputs, i)), input(inputs, i).extents, common);
    std::transform(result.begin(), result.end(), other.begin(), result.begin(), compute);
    extents = common;
  }
  return made(inputs, type, extents, std::move(result));
}

std::optional<Constant> fold_unary(const OpNode& node, const Inputs& inputs) {
  static const std::map<std::string, Unary> ops{{"Neg", [](double a) { return -a; }},
                                                {"Abs", [](double a) { return std::abs(a); }},
                                                {"Sqrt", [](double a) { return std::sqrt(a); }},
                                                {"Exp", [](double a) { return std::exp(a); }},
                                                {"Log", [](double a) { return std::log(a); }},
                                                {"Floor", [](double a) { return std::floor(a); }},
                                                {"Ceil", [](double a) { return std::ceil(a); }},
                                                {"Round", [](double a) { return std::nearbyint(a); }},
                                                {"Reciprocal", [](double a) { return 1 / a; }},
                                                {"Sigmoid", [](double a) { return 1 / (1 + std::exp(-a)); }},
                                                {"Relu", [](double a) { return std::max(a, 0.0); }},
                                                {"Tanh", [](double a) { return std::tanh(a); }},
                                                {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }}};
  const auto found = ops.find(node.op);
  if (found == ops.end()) return std::nullopt;
  std::vector<double> numbers = numbers_of(input(inputs, 0));
  std::transform(numbers.begin(), numbers.end(), numbers.begin(), found->second);
  return made(inputs, input(inputs, 0).type, input(inputs, 0).extents, std::move(numbers));
}

Constant cast(const OpNode& node, const Constant& source) {
  const auto type = static_cast<ItemType>(integer_of(node, "to", 0));
  if (bytes_of(type) == 0) fail(Exit::bad_data, "a cast to a type that is not supported");
  if (is_whole(type) == is_whole(source.type)) {
    // A view of a parameter stays one: floats of any size are read as float32.
    Constant same = source;
    if (source.numbers != nullptr) same.type = type;
    return same;
  }
  std::vector<double> numbers = numbers_of(source);
  for (double& one : numbers) {
    if (type == ItemType::boolean) {
      one = one != 0 ? 1 : 0;
    } else if (is_whole(type)) {
      one = std::trunc(one);
    }
  }
  return made({&source}, type, source.extents, std::move(numbers));
}

Constant sliced(const Constant& source, const std::vector<Cut>& cuts) {
  Constant result = source;
  const bool forward = std::all_of(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.step > 0; });
  if (forward && source.numbers == nullptr && source.tensor != nullptr && item_count(source.extents) > 65536) {
    for (const Cut& cut : cuts) {
      const auto dim = static_cast<std::size_t>(cut.dim);
      result.offset += cut.first * result.strides[dim];
      result.extents[dim] = cut.count;
      result.strides[dim] *= cut.step;
    }
    return result;
  }
  std::vector<double> numbers = numbers_of(source);
  Extents extents = source.extents;
  for (const Cut& cut : cuts) {
    const auto dim = static_cast<std::size_t>(cut.dim);
    std::int64_t inner = 1;
    for (std::size_t i = dim + 1; i < extents.size(); ++i) inner *= extents[i];
    const std::int64_t outer = item_count({extents.begin(), extents.begin() + cut.dim});
    std::vector<double> kept;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < cut.count; ++i) {
        const std::int64_t begin = (o * extents[dim] + cut.first + i * cut.step) * inner;
        for (std::int64_t k = 0; k < inner; ++k) kept.push_back(numbers[static_cast<std::size_t>(begin + k)]);
      }
    }
    numbers = std::move(kept);
    extents[dim] = cut.count;
  }
  return made({&source}, source.type, extents, std::move(numbers));
}

Constant concatenated(const OpNode& node, const Inputs& inputs) {
  const Constant& first = input(inputs, 0);
  const auto dim = static_cast<std::size_t>(dim_of(integer_of(node, "axis", 0), first.extents.size()));
  Extents extents = first.extents;
  extents[dim] = 0;
  std::vector<std::vector<double>> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Constant& one = input(inputs, i);
    Extents others = one.extents;
    if (others.size() != extents.size())
      fail(Exit::bad_data, "tensors of {} and {} dims are joined", extents.size(), others.size());
    extents[dim] = base::checked_add(extents[dim], others[dim]);
    others[dim] = extents[dim];
    if (others != extents) fail(Exit::bad_data, "tensors are joined whose other extents differ");
    parts.push_back(numbers_of(one));
  }
  check_size(extents);
  const std::int64_t outer = item_count({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(dim)});
  std::vector<double> numbers;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::vector<double>& part : parts) {
      const auto run = static_cast<std::ptrdiff_t>(part.size()) / std::max<std::int64_t>(outer, 1);
      numbers.insert(numbers.end(), part.begin() + o * run, part.begin() + (o + 1) * run);
    }
  }
  return made(inputs, first.type, extents, std::move(numbers));
}

Constant gathered(const OpNode& node, const Inputs& inputs) {
  const Constant& source = input(inputs, 0);
  const Constant& indices = input(inputs, 1);
  const auto dim = static_cast<std::size_t>(dim_of(integer_of(node, "axis", 0), source.extents.size()));
  std::vector<Constant> pieces;
  Extents extents{source.extents.begin(), source.extents.begin() + static_cast<std::ptrdiff_t>(dim)};
  extents.insert(extents.end(), indices.extents.begin(), indices.extents.end());
  extents.insert(extents.end(), source.extents.begin() + static_cast<std::ptrdiff_t>(dim) + 1, source.extents.end());
  check_size(extents);
  const std::vector<double> numbers = numbers_of(source);
  const std::int64_t outer =
      item_count({source.extents.begin(), source.extents.begin() + static_cast<std::ptrdiff_t>(dim)});
  const std::int64_t inner =
      item_count({source.extents.begin() + static_cast<std::ptrdiff_t>(dim) + 1, source.extents.end()});
  const std::int64_t extent = source.extents[dim];
  const Extents wanted = integers_of(indices);
  std::vector<double> result;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t index : wanted) {
      if (index < 0) index += extent;
      if (index < 0 || index >= extent) fail(Exit::bad_data, "item {} of {} is taken", index, extent);
      for (std::int64_t k = 0; k < inner; ++k)
        result.push_back(numbers[static_cast<std::size_t>((o * extent + index) * inner + k)]);
    }
  }
  return made({&source}, source.type, extents, std::move(result));
}

Constant expanded(const Inputs& inputs) {
  const Constant& source = input(inputs, 0);
  const Extents extents = broadcast(source.extents, integers_of(input(inputs, 1)));
  check_size(extents);
  return made(inputs, source.type, extents, spread(numbers_of(source), source.extents, extents));
}

Constant tiled(const Inputs& inputs) {
  const Constant& source = input(inputs, 0);
  const Extents times = integers_of(input(inputs, 1));
  if (times.size() != source.extents.size())
    fail(Exit::bad_data, "a tile of {} dims of {}", times.size(), source.extents.size());
  // Each dim becomes two, of which the outer one is spread.
  Extents split;
  Extents wide;
  Extents extents;
  for (std::size_t i = 0; i < times.size(); ++i) {
    split.insert(split.end(), {1, source.extents[i]});
    wide.insert(wide.end(), {times[i], source.extents[i]});
    extents.push_back(base::checked_mul(times[i], source.extents[i]));
  }
  check_size(extents);
  return made(inputs, source.type, extents, spread(numbers_of(source), split, wide));
}

Constant range(const Inputs& inputs) {
  const double begin = numbers_of(input(inputs, 0)).at(0);
  const double end = numbers_of(input(inputs, 1)).at(0);
  const double step = numbers_of(input(inputs, 2)).at(0);
  const double count = step == 0 ? -1 : std::max(0.0, std::ceil((end - begin) / step));
  if (!(count >= 0 && count <= static_cast<double>(most_folded_items)))
    fail(Exit::bad_data, "a range from {} to {} in steps of {}", begin, end, step);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    numbers.push_back(begin + static_cast<double>(i) * step);
  const auto size = static_cast<std::int64_t>(numbers.size());
  return made(inputs, input(inputs, 0).type, {size}, std::move(numbers));
}

Constant filled(const OpNode& node, const Inputs& inputs) {
  const Extents extents = integers_of(input(inputs, 0));
  check_size(extents);
  double value = 0;
  ItemType type = ItemType::f32;
  if (const auto found = node.attributes.find("value"); found != node.attributes.end() && found->second.tensor) {
    const Constant one = constant_of(*found->second.tensor, true);
    type = one.type;
    const std::vector<double> numbers = numbers_of(one);
    if (!numbers.empty()) value = numbers.front();
  }
  return made({}, type, extents, std::vector<double>(static_cast<std::size_t>(item_count(extents)), value));
}

Constant chosen(const Inputs& inputs) {
  const Constant& condition = input(inputs, 0);
  const Constant& yes = input(inputs, 1);
  const Constant& no = input(inputs, 2);
  const Extents extents = broadcast(broadcast(condition.extents, yes.extents), no.extents);
  check_size(extents);
  const std::vector<double> which = spread(numbers_of(condition), condition.extents, extents);
  std::vector<double> result = spread(numbers_of(yes), yes.extents, extents);
  const std::vector<double> others = spread(numbers_of(no), no.extents, extents);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (which[i] == 0) result[i] = others[i];
  }
  return made(inputs, yes.type, extents, std::move(result));
}

std::optional<Constant> reduced(const OpNode& node, const Inputs& inputs) {
  if (node.op != "ReduceProd" && node.op != "ReduceSum" && node.op != "ReduceMax" && node.op != "ReduceMin" &&
      node.op != "ReduceMean")
    return std::nullopt;
  const Constant& source = input(inputs, 0);
  const std::optional<Extents> axes = axes_of(node, inputs, 1);
  if (axes && !axes->empty() && static_cast<std::size_t>(axes->size()) != source.extents.size()) return std::nullopt;
  const std::vector<double> numbers = numbers_of(source);
  if (numbers.empty()) return std::nullopt;
  double value = numbers.front();
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (node.op == "ReduceProd") value *= numbers[i];
    if (node.op == "ReduceSum" || node.op == "ReduceMean") value += numbers[i];
    if (node.op == "ReduceMax") value = std::max(value, numbers[i]);
    if (node.op == "ReduceMin") value = std::min(value, numbers[i]);
  }
  if (node.op == "ReduceMean") value /= static_cast<double>(numbers.size());
  const Extents extents(integer_of(node, "keepdims", 1) != 0 ? source.extents.size() : 0, 1);
  return made(inputs, source.type, extents, {value});
}

std::optional<std::vector<Constant>> fold_shape_op(const OpNode& node, const Inputs& inputs, std::int64_t opset) {
  const auto one = [](Constant constant) { return std::vector<Constant>{std::move(constant)}; };
  const std::string& op = node.op;
  if (op == "Identity" || op == "Dropout") return one(input(inputs, 0));
  if (op == "Cast") return one(cast(node, input(inputs, 0)));
  if (op == "CastLike") return one(input(inputs, 0));
  if (op == "Shape" || op == "Size") {
    Extents extents = input(inputs, 0).extents;
    if (op == "Size") return one(constant_of(ItemType::i64, {}, {static_cast<double>(item_count(extents))}));
    return one(integers(extents));
  }
  if (op == "Reshape") {
    const Extents target = opset < 5 ? list_of(node, "shape") : integers_of(input(inputs, 1));
    return one(reshaped(input(inputs, 0),
                        reshape_target(input(inputs, 0).extents, target, integer_of(node, "allowzero", 0) != 0)));
  }
  if (op == "Flatten") {
    const Extents& extents = input(inputs, 0).extents;
    const std::int64_t axis = integer_of(node, "axis", 1);
    const auto split =
        axis == static_cast<std::int64_t>(extents.size()) ? static_cast<int>(axis) : dim_of(axis, extents.size());
    return one(reshaped(input(inputs, 0), {item_count({extents.begin(), extents.begin() + split}),
                                           item_count({extents.begin() + split, extents.end()})}));
  }
  if (op == "Squeeze")
    return one(reshaped(input(inputs, 0), squeezed(input(inputs, 0).extents, axes_of(node, inputs, 1))));
  if (op == "Unsqueeze")
    return one(
        reshaped(input(inputs, 0), unsqueezed(input(inputs, 0).extents, axes_of(node, inputs, 1).value_or(Extents{}))));
  if (op == "Transpose") {
    const std::size_t rank = input(inputs, 0).extents.size();
    std::vector<int> permutation;
    for (const std::int64_t dim : list_of(node, "perm")) permutation.push_back(dim_of(dim, rank));
    for (std::size_t i = rank; permutation.size() < rank && i-- > 0;) permutation.push_back(static_cast<int>(i));
    std::vector<int> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted.size() != rank || sorted[i] != static_cast<int>(i))
        fail(Exit::bad_data, "perm is no permutation of the dims");
    }
    return one(transposed(input(inputs, 0), permutation));
  }
  if (op == "Slice") return one(sliced(input(inputs, 0), cuts_of(node, inputs, input(inputs, 0).extents)));
  if (op == "Split") {
    const Constant& source = input(inputs, 0);
    const int dim = dim_of(integer_of(node, "axis", 0), source.extents.size());
    std::vector<Constant> parts;
    std::int64_t first = 0;
    for (const std::int64_t size :
         parts_of_split(node, given(inputs, 1) ? inputs[1] : nullptr, source.extents[static_cast<std::size_t>(dim)])) {
      parts.push_back(sliced(source, {{.dim = dim, .first = first, .count = size, .step = 1}}));
      first += size;
    }
    return parts;
  }
  return std::nullopt;
}

}  // namespace

Constant constant_of_node(const OpNode& node) {
  const auto attribute = [&](const char* key) {
    const auto found = node.attributes.find(key);
    return found == node.attributes.end() ? nullptr : &found->second;
  };
  if (const Attribute* value = attribute("value"); value != nullptr && value->tensor)
    return constant_of(*value->tensor, true);
  if (const Attribute* value = attribute("value_float")) return constant_of(ItemType::f32, {}, {value->f});
  if (const Attribute* value = attribute("value_int"))
    return constant_of(ItemType::i64, {}, {static_cast<double>(value->i)});
  if (const Attribute* value = attribute("value_ints")) return integers(value->ints);
  if (const Attribute* value = attribute("value_floats"))
    return constant_of(ItemType::f32, {static_cast<std::int64_t>(value->floats.size())},
                       {value->floats.begin(), value->floats.end()});
  fail(Exit::bad_data, "a constant of a kind that is not supported");
}

std::optional<std::vector<Constant>> fold(const OpNode& node, const Inputs& inputs, std::int64_t opset) {
  const auto one = [](std::optional<Constant> constant) -> std::optional<std::vector<Constant>> {
    if (!constant) return std::nullopt;
    return std::vector<Constant>{std::move(*constant)};
  };
  if (auto result = fold_shape_op(node, inputs, opset)) return result;
  if (auto result = fold_binary(node, inputs)) return one(std::move(result));
  if (auto result = fold_unary(node, inputs)) return one(std::move(result));
  if (auto result = reduced(node, inputs)) return one(std::move(result));
  if (node.op == "Concat") return one(concatenated(node, inputs));
  if (node.op == "Gather") return one(gathered(node, inputs));
  if (node.op == "Expand") return one(expanded(inputs));
  if (node.op == "Tile") return one(tiled(inputs));
  if (node.op == "Range") return one(range(inputs));
  if (node.op == "ConstantOfShape") return one(filled(node, inputs));
  if (node.op == "Where") return one(chosen(inputs));
  return std::nullopt;
}

}  // namespace orthant::model::onnx
