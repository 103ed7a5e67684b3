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

/// A view of the box `part` of `whole`, in coordinates relative to the first item of the layout.
Layout box_of(const Layout& whole, const Box& part);

/// True if the layout is channels_last(extents) at any offset.
bool is_dense(const Layout& layout);
/// True if n, d, h and w can be walked as one index with one stride (strides.w), channels side by side.
bool is_pixel_list(const Layout& layout);

}  // namespace orthant::tensor
