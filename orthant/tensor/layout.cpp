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

bool is_pixel_list(const Layout& layout) {
  Layout wanted = channels_last(layout.extents);
  wanted.strides.w = layout.strides.w;
  wanted.strides.h = layout.strides.w * layout.extents.w;
  wanted.strides.d = wanted.strides.h * layout.extents.h;
  wanted.strides.n = wanted.strides.d * layout.extents.d;
  return same_walk(layout, wanted);
}

}  // namespace orthant::tensor
