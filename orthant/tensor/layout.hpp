#pragma once

#include "orthant/tensor/box.hpp"

namespace orthant::tensor {

/// Where the items of a local box lie in a float buffer, all counted in items:
/// item (n,c,d,h,w) is at offset + n*strides.n + c*strides.c + ...
struct Layout {
  Shape extents;
  Shape strides;
  std::int64_t offset = 0;

  bool operator==(const Layout&) const = default;
};

/// In a task: this argument has the same layout as another one.
inline constexpr Layout as_other{.extents = {0, 0, 0, 0, 0}, .strides = {0, 0, 0, 0, 0}, .offset = 0};
constexpr bool is_given(const Layout& layout) { return layout.strides.c != 0; }

/// NDHWC without gaps: the order of all activations.
Layout channels_last(const Shape& extents);
/// NCDHW without gaps: the order of PyTorch, of files and of flattened tensors.
Layout channels_first(const Shape& extents);
/// A view of the channels [first, first + count) of `whole`.
Layout channel_range(const Layout& whole, std::int64_t first, std::int64_t count);

/// A view of the box `part` of `whole`, whose first item is at `origin`.
inline Layout box_of(const Layout& whole, const Box& part, const Shape& origin = {0, 0, 0, 0, 0}) {
  const auto& [n, c, d, h, w] = whole.strides;
  const Shape& lo = part.lo;
  return {.extents = extents_of(part),
          .strides = whole.strides,
          .offset = whole.offset + (lo.n - origin.n) * n + (lo.c - origin.c) * c + (lo.d - origin.d) * d +
                    (lo.h - origin.h) * h + (lo.w - origin.w) * w};
}

/// True if the layout is channels_last(extents) at any offset.
inline bool is_dense(const Layout& layout) {
  const auto& [n, c, d, h, w] = layout.extents;
  const Shape& strides = layout.strides;
  return (c <= 1 || strides.c == 1) && (w <= 1 || strides.w == c) && (h <= 1 || strides.h == c * w) &&
         (d <= 1 || strides.d == c * w * h) && (n <= 1 || strides.n == c * w * h * d);
}
/// True if n, d, h and w can be walked as one index with one stride (strides.w), channels side by side.
bool is_pixel_list(const Layout& layout);

}  // namespace orthant::tensor
