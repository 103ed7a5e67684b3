#include "orthant/tensor/layout.hpp"

#include "orthant/base/checked.hpp"

#include <cassert>

namespace orthant::tensor {
namespace {

/// Strides without gaps; `order` from the slowest dim to the fastest.
Layout packed(const Shape& extents, const std::array<Dim, 5>& order) {
  Layout layout{.extents = extents, .strides = {}, .offset = 0};
  std::int64_t stride = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    layout.strides[*dim] = stride;
    stride = base::checked_mul(stride, extents[*dim]);
  }
  return layout;
}

/// True if dims with more than one item have the strides of `wanted`.
bool same_walk(const Layout& layout, const Layout& wanted) {
  for (const Dim dim : all_dims) {
    if (layout.extents[dim] > 1 && layout.strides[dim] != wanted.strides[dim]) return false;
  }
  return true;
}

}  // namespace

Layout channels_last(const Shape& extents) {
  const std::int64_t w = extents.c;
  const std::int64_t h = base::checked_mul(w, extents.w);
  const std::int64_t d = base::checked_mul(h, extents.h);
  const std::int64_t n = base::checked_mul(d, extents.d);
  base::checked_mul(n, extents.n);
  return {.extents = extents, .strides = {n, 1, d, h, w}, .offset = 0};
}

Layout channels_first(const Shape& extents) { return packed(extents, {Dim::n, Dim::c, Dim::d, Dim::h, Dim::w}); }

Layout channel_range(const Layout& whole, std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count >= 0 && first + count <= whole.extents.c);
  Layout part = whole;
  part.extents.c = count;
  part.offset += first * whole.strides.c;
  return part;
}

Layout box_of(const Layout& whole, const Box& part) {
  Layout result{.extents = extents_of(part), .strides = whole.strides, .offset = whole.offset};
  const auto& [n, c, d, h, w] = whole.strides;
  result.offset += part.lo.n * n + part.lo.c * c + part.lo.d * d + part.lo.h * h + part.lo.w * w;
  return result;
}

bool is_dense(const Layout& layout) {
  const auto& [n, c, d, h, w] = layout.extents;
  const Shape& strides = layout.strides;
  return (c <= 1 || strides.c == 1) && (w <= 1 || strides.w == c) && (h <= 1 || strides.h == c * w) &&
         (d <= 1 || strides.d == c * w * h) && (n <= 1 || strides.n == c * w * h * d);
}

bool is_pixel_list(const Layout& layout) {
  Layout wanted = channels_last(layout.extents);
  wanted.strides.w = layout.strides.w;
  wanted.strides.h = layout.strides.w * layout.extents.w;
  wanted.strides.d = wanted.strides.h * layout.extents.h;
  wanted.strides.n = wanted.strides.d * layout.extents.d;
  return same_walk(layout, wanted);
}

}  // namespace orthant::tensor
