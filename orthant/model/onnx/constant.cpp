#include "orthant/model/onnx/constant.hpp"

#include "orthant/base/checked.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;

bool is_float(ItemType type) {
  return type == ItemType::f32 || type == ItemType::f64 || type == ItemType::f16 || type == ItemType::bf16;
}

/// visit(index in the tensor) for every item in row-major order.
template <class Visit>
void walk(const Constant& view, Visit visit) {
  const std::int64_t count = item_count(view.extents);
  Extents position(view.extents.size(), 0);
  std::int64_t at = view.offset;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(at);
    for (std::size_t dim = position.size(); dim-- > 0;) {
      at += view.strides[dim];
      if (++position[dim] < view.extents[dim]) break;
      at -= view.strides[dim] * view.extents[dim];
      position[dim] = 0;
    }
  }
}

/// Strides for other extents over the same items, if there are some.
std::optional<Extents> regrouped(const Constant& view, const Extents& extents) {
  Extents strides(extents.size(), 1);
  std::size_t from = 0;
  std::size_t to = 0;
  while (to < extents.size()) {
    if (extents[to] == 1) {
      ++to;
      continue;
    }
    while (from < view.extents.size() && view.extents[from] == 1) ++from;
    if (from == view.extents.size()) return std::nullopt;
    std::size_t from_end = from + 1;
    std::size_t to_end = to + 1;
    std::int64_t have = view.extents[from];
    std::int64_t want = extents[to];
    while (have != want) {
      if (have < want) {
        if (from_end == view.extents.size()) return std::nullopt;
        have *= view.extents[from_end++];
      } else {
        if (to_end == extents.size()) return std::nullopt;
        want *= extents[to_end++];
      }
    }
    // Dims that join must lie one in the other.
    std::int64_t inner = 0;
    for (std::size_t i = from_end; i-- > from;) {
      if (view.extents[i] == 1) continue;
      if (inner != 0 && view.strides[i] != inner) return std::nullopt;
      inner = view.strides[i] * view.extents[i];
    }
    std::int64_t stride = 1;
    for (std::size_t i = from_end; i-- > from;) {
      if (view.extents[i] == 1) continue;
      stride = view.strides[i];
      break;
    }
    for (std::size_t i = to_end; i-- > to;) {
      strides[i] = stride;
      stride *= extents[i];
    }
    from = from_end;
    to = to_end;
  }
  return strides;
}

}  // namespace

bool is_made_up(std::string_view name) {
  const auto shown = [](char c) { return c > ' ' && c <= '~'; };
  if (name.empty() || name.size() > 300 || !std::all_of(name.begin(), name.end(), shown)) return true;
  if (name.starts_with("onnx::") || name.starts_with("/")) return true;
  if (name.find("_tensor_constant") != name.npos || name.find("lifted_tensor") != name.npos) return true;
  if (name.find('.') != name.npos) return false;
  constexpr std::array<std::string_view, 5> beginnings{"val_", "_val_", "const_", "_const_", "scalar_tensor"};
  const bool number = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number || std::any_of(beginnings.begin(), beginnings.end(), [&](auto one) { return name.starts_with(one); });
}

const std::string& name_of(const Constant& constant) {
  return constant.alias.empty() ? constant.tensor->name : constant.alias;
}

Extents row_major(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(extents[i], 1);
  return strides;
}

Constant constant_of(const Tensor& tensor, bool is_node) {
  Constant constant;
  constant.type = tensor.type;
  constant.extents = tensor.extents;
  constant.tensor = &tensor;
  constant.is_node = is_node;
  constant.strides = row_major(tensor.extents);
  return constant;
}

Constant constant_of(ItemType type, Extents extents, std::vector<double> numbers) {
  Constant constant;
  constant.type = type;
  constant.extents = std::move(extents);
  constant.numbers = std::make_shared<const std::vector<double>>(std::move(numbers));
  constant.strides = row_major(constant.extents);
  return constant;
}

Constant integers(const Extents& values) {
  return constant_of(ItemType::i64, {static_cast<std::int64_t>(values.size())}, {values.begin(), values.end()});
}

bool is_parameter(const Constant& constant) {
  if (constant.tensor == nullptr || constant.is_node || !is_float(constant.type)) return false;
  return !is_made_up(name_of(constant));
}

std::string parameter_name(const Constant& constant) {
  return is_parameter(constant) ? name_of(constant) : constant.computed_from;
}

std::vector<double> numbers_of(const Constant& constant) {
  const std::int64_t count = item_count(constant.extents);
  if (count > most_folded_items ||
      (constant.tensor != nullptr && item_count(constant.tensor->extents) > most_folded_items)) {
    fail(Exit::bad_data, "a constant of {} items is computed with; at most {} are supported", count, most_folded_items);
  }
  if (constant.numbers != nullptr) return *constant.numbers;
  if (constant.type == ItemType::undefined) fail(Exit::bad_data, "a constant of a type that is not supported");
  std::vector<double> all(static_cast<std::size_t>(item_count(constant.tensor->extents)));
  read_items(*constant.tensor, all);
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(count));
  walk(constant, [&](std::int64_t at) { numbers.push_back(all[static_cast<std::size_t>(at)]); });
  return numbers;
}

Extents integers_of(const Constant& constant) {
  constexpr double most = 4.611686018427388e18;
  Extents values;
  for (const double number : numbers_of(constant)) {
    const double whole = std::isnan(number) ? 0 : std::clamp(std::trunc(number), -most, most);
    values.push_back(static_cast<std::int64_t>(whole));
  }
  return values;
}

std::optional<double> single_number(const Constant& constant) {
  const std::int64_t count = item_count(constant.extents);
  if (count < 1 || count > 65536) return std::nullopt;
  const std::vector<double> numbers = numbers_of(constant);
  if (std::any_of(numbers.begin(), numbers.end(), [&](double one) { return one != numbers.front(); }))
    return std::nullopt;
  return numbers.front();
}

Constant reshaped(const Constant& constant, const Extents& extents) {
  Constant result = constant;
  result.extents = extents;
  if (constant.numbers != nullptr || item_count(extents) == 0) {
    result.strides = row_major(extents);
    return result;
  }
  if (const std::optional<Extents> strides = regrouped(constant, extents)) {
    result.strides = *strides;
    return result;
  }
  Constant copied = constant_of(constant.type, extents, numbers_of(constant));
  copied.computed_from = parameter_name(constant);
  return copied;
}

Constant transposed(const Constant& constant, const std::vector<int>& permutation) {
  Constant result = constant;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const auto from = static_cast<std::size_t>(permutation[i]);
    result.extents[i] = constant.extents[from];
    result.strides[i] = constant.strides[from];
  }
  if (constant.numbers == nullptr) return result;
  std::vector<double> numbers;
  numbers.reserve(constant.numbers->size());
  walk(result, [&](std::int64_t at) { numbers.push_back((*constant.numbers)[static_cast<std::size_t>(at)]); });
  Constant copied = constant_of(constant.type, result.extents, std::move(numbers));
  copied.computed_from = constant.computed_from;
  return copied;
}

Extents reshape_target(const Extents& extents, const Extents& target, bool allow_zero) {
  if (target.size() > most_dims) fail(Exit::bad_data, "a reshape to {} dims", target.size());
  Extents result = target;
  std::int64_t open = -1;
  std::int64_t rest = 1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && !allow_zero) {
      if (i >= extents.size())
        fail(Exit::bad_data, "a reshape copies dim {} of a source of {} dims", i, extents.size());
      result[i] = extents[i];
    }
    if (result[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
    } else if (result[i] < 0) {
      fail(Exit::bad_data, "a reshape to an extent of {}", result[i]);
    } else {
      rest = base::checked_mul(rest, result[i]);
    }
  }
  const std::int64_t count = item_count(extents);
  if (open >= 0 && rest > 0 && count % rest == 0) result[static_cast<std::size_t>(open)] = count / rest;
  if (open >= 0 ? rest == 0 || count % rest != 0 : rest != count) {
    fail(Exit::bad_data, "a reshape of {} items does not fit; was the file exported for another input or mini-batch?",
         count);
  }
  return result;
}

int dim_of(std::int64_t dim, std::size_t rank) {
  const auto dims = static_cast<std::int64_t>(rank);
  if (dim < -dims || dim >= dims) fail(Exit::bad_data, "dim {} of a tensor of {} dims", dim, dims);
  return static_cast<int>(dim < 0 ? dim + dims : dim);
}

}  // namespace orthant::model::onnx
