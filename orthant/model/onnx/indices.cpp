#include "orthant/base/checked.hpp"
#include "orthant/model/onnx/fold.hpp"
#include "orthant/model/onnx/node_view.hpp"

#include <algorithm>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;
using Inputs = std::vector<const Constant*>;

}  // namespace

const Constant& input(const Inputs& inputs, std::size_t index) {
  if (index >= inputs.size() || inputs[index] == nullptr) fail(Exit::bad_data, "input {} is missing", index);
  return *inputs[index];
}

bool given(const Inputs& inputs, std::size_t index) { return index < inputs.size() && inputs[index] != nullptr; }

std::optional<Extents> axes_of(const OpNode& node, const Inputs& inputs, std::size_t index) {
  if (has(node, "axes")) return list_of(node, "axes");
  if (given(inputs, index)) return integers_of(*inputs[index]);
  return std::nullopt;
}

Extents squeezed(const Extents& extents, const std::optional<Extents>& axes) {
  std::vector<bool> drop(extents.size(), false);
  if (axes) {
    for (const std::int64_t axis : *axes) {
      const auto dim = static_cast<std::size_t>(dim_of(axis, extents.size()));
      if (extents[dim] != 1) fail(Exit::bad_data, "a dim of {} items is squeezed", extents[dim]);
      drop[dim] = true;
    }
  } else {
    for (std::size_t i = 0; i < extents.size(); ++i) drop[i] = extents[i] == 1;
  }
  Extents result;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (!drop[i]) result.push_back(extents[i]);
  }
  return result;
}

Extents unsqueezed(const Extents& extents, const Extents& axes) {
  const std::size_t rank = extents.size() + axes.size();
  if (rank > most_dims) fail(Exit::bad_data, "a tensor of {} dims", rank);
  std::vector<bool> one(rank, false);
  for (const std::int64_t axis : axes) one[static_cast<std::size_t>(dim_of(axis, rank))] = true;
  if (static_cast<std::size_t>(std::count(one.begin(), one.end(), true)) != axes.size())
    fail(Exit::bad_data, "an axis is named twice");
  Extents result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) result.push_back(one[i] ? 1 : extents[next++]);
  return result;
}

std::vector<Cut> cuts_of(const OpNode& node, const Inputs& inputs, const Extents& extents) {
  const bool old = has(node, "starts");
  const Extents starts = old ? list_of(node, "starts") : integers_of(input(inputs, 1));
  const Extents ends = old ? list_of(node, "ends") : integers_of(input(inputs, 2));
  Extents axes = old ? list_of(node, "axes") : given(inputs, 3) ? integers_of(*inputs[3]) : Extents{};
  const Extents steps = !old && given(inputs, 4) ? integers_of(*inputs[4]) : Extents(starts.size(), 1);
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    fail(Exit::bad_data, "starts, ends, axes and steps of different lengths");
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0 || std::abs(steps[i]) > most_folded_items) fail(Exit::bad_data, "a step of {}", steps[i]);
    const int dim = dim_of(axes[i], extents.size());
    const std::int64_t extent = extents[static_cast<std::size_t>(dim)];
    const bool back = steps[i] < 0;
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, back ? -1 : 0, back ? extent - 1 : extent);
    };
    const std::int64_t first = place(starts[i]);
    // Ends far below zero stand for the beginning.
    const std::int64_t end = back && ends[i] < -extent ? -1 : place(ends[i]);
    const std::int64_t length = std::max<std::int64_t>(back ? first - end : end - first, 0);
    const std::int64_t step = std::abs(steps[i]);
    cuts.push_back(
        {.dim = dim, .first = first, .count = length / step + (length % step != 0 ? 1 : 0), .step = steps[i]});
  }
  return cuts;
}

Extents parts_of_split(const OpNode& node, const Constant* sizes, std::int64_t extent) {
  Extents parts = sizes != nullptr ? integers_of(*sizes) : list_of(node, "split");
  if (parts.empty()) {
    const auto count = static_cast<std::int64_t>(node.outputs.size());
    const std::int64_t size = count == 0 ? 0 : (extent + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<std::int64_t>(extent - i * size, 0, size));
  }
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0) fail(Exit::bad_data, "a part of {} items", part);
    sum = base::checked_add(sum, part);
  }
  if (sum != extent || parts.size() != node.outputs.size())
    fail(Exit::bad_data, "{} items are split into parts of {} items", extent, sum);
  return parts;
}

}  // namespace orthant::model::onnx
