#include "orthant/data/arrays/axes.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <cctype>

namespace orthant::data::arrays {
namespace {

using tensor::Dim;
using tensor::Shape;

/// The orders of axes that are common in files.
std::vector<Axes> sample_orders(const AxesWanted& wanted) {
  const std::span<const Dim> named = tensor::named_dims(wanted.spatial_count);
  const Axes spatial(named.begin(), named.end());
  const bool single_pixel =
      tensor::pixels({.n = 1, .d = wanted.shape.d, .h = wanted.shape.h, .w = wanted.shape.w}) == 1;
  std::vector<Axes> orders;
  if (wanted.shape.c == 1) {
    if (single_pixel) orders.emplace_back();
    orders.push_back(spatial);
  }
  if (single_pixel) orders.push_back({Dim::c});
  orders.push_back(spatial);
  orders.back().push_back(Dim::c);
  orders.push_back({Dim::c});
  orders.back().insert(orders.back().end(), spatial.begin(), spatial.end());
  return orders;
}

bool fits(const std::vector<std::int64_t>& extents, const Axes& axes, const Shape& shape) {
  if (extents.size() != axes.size()) return false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == Dim::n ? extents[i] < 1 : extents[i] != shape[axes[i]]) return false;
  }
  return true;
}

/// True if the items have the same offsets in both orders.
bool same_places(const std::vector<std::int64_t>& extents, const Axes& a, const Axes& b) {
  const tensor::Layout x = layout_of(shape_of(extents, a), a);
  const tensor::Layout y = layout_of(shape_of(extents, b), b);
  return x.extents == y.extents && std::all_of(tensor::all_dims.begin(), tensor::all_dims.end(), [&](Dim dim) {
           return x.extents[dim] == 1 || x.strides[dim] == y.strides[dim];
         });
}

}  // namespace

std::string to_text(const Axes& axes) {
  std::string text;
  for (const Dim dim : axes) text += static_cast<char>(std::toupper(*tensor::name_of(dim)));
  return text;
}

std::optional<Axes> parse_axes(const std::string& text) {
  for (const int spatial_count : {3, 2, 1}) {
    const AxesWanted any{.shape = {.n = 1, .c = 1, .d = 2, .h = 2, .w = 2}, .spatial_count = spatial_count};
    for (Axes axes : sample_orders(any)) {
      if (to_text(axes) == text) return axes;
      axes.insert(axes.begin(), Dim::n);
      if (to_text(axes) == text) return axes;
    }
  }
  return std::nullopt;
}

Shape shape_of(const std::vector<std::int64_t>& extents, const Axes& axes) {
  Shape shape;
  for (std::size_t i = 0; i < axes.size(); ++i) shape[axes[i]] = extents[i];
  return shape;
}

tensor::Layout layout_of(const Shape& shape, const Axes& axes) {
  const bool last = axes.empty() || axes.back() == Dim::c;
  return last ? tensor::channels_last(shape) : tensor::channels_first(shape);
}

std::vector<Axes> matching_axes(const std::vector<std::int64_t>& extents, const AxesWanted& wanted) {
  std::vector<Axes> found;
  for (const Axes& order : sample_orders(wanted)) {
    for (const bool many : {false, true}) {
      Axes axes = order;
      if (many) axes.insert(axes.begin(), Dim::n);
      if (!fits(extents, axes, wanted.shape)) continue;
      const bool known =
          std::any_of(found.begin(), found.end(), [&](const Axes& other) { return same_places(extents, axes, other); });
      if (!known) found.push_back(std::move(axes));
    }
  }
  return found;
}

std::string to_text(const AxesWanted& wanted) {
  std::string text = fmt::format("{}", wanted.shape.c);
  for (const Dim dim : tensor::named_dims(wanted.spatial_count)) text += fmt::format("x{}", wanted.shape[dim]);
  return text;
}

std::string dims_text(int spatial_count) {
  std::string text = "C";
  for (const Dim dim : tensor::named_dims(spatial_count))
    text += fmt::format("x{}", static_cast<char>(std::toupper(*tensor::name_of(dim))));
  return text;
}

}  // namespace orthant::data::arrays
