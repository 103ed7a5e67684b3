#pragma once

#include "orthant/tensor/shape.hpp"

namespace orthant::tensor {

/// The window of a convolution or pooling: per spatial dim the number of taps, their dilation, the stride between
/// outputs, and the padding at both ends.
struct Window {
  Extent3 size = cube(1);
  Extent3 stride = cube(1);
  Extent3 dilation = cube(1);
  Extent3 pad_lo = cube(0);
  Extent3 pad_hi = cube(0);

  bool operator==(const Window&) const = default;
};

/// size.d * size.h * size.w.
std::int64_t taps(const Window& window);
/// Cells from the first tap to the last: (size - 1) * dilation + 1.
std::int64_t reach(const Window& window, Dim dim);

/// Throws Error naming the field if a size, stride or dilation is below 1 or a padding is negative.
void check(const Window& window);

/// Number of outputs along `dim` for `extent` inputs. Throws Error if the window is larger than the padded input.
std::int64_t window_output(const Window& window, Dim dim, std::int64_t extent);
Extent3 window_output(const Window& window, const Extent3& extents);

/// The adjoint: outputs of a transposed convolution, with `extra` more cells at the upper end.
Extent3 transposed_output(const Window& window, const Extent3& extents, const Extent3& extra);

}  // namespace orthant::tensor
