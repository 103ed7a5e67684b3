#pragma once

#include "orthant/tensor/box.hpp"
#include "orthant/tensor/window.hpp"

namespace orthant::tensor {

/// The src cells that the windows of the dst cells in `box` read, without the padding; `src` and `dst` are the global
/// shapes. Cells that no window reads belong to the box before them, so that the boxes of all dst cells together cover
/// src. n and c are those of `box`.
Box cells_read(const Window& window, const Box& box, const Shape& src, const Shape& dst);
/// The same along one spatial dim, for a range that is not empty; what is read may be.
Range cells_read(const Window& window, Dim dim, const Range& range, const Shape& src, const Shape& dst);

/// The adjoint: the dst cells whose windows read src cells of `box`. There is always at least one, because kernels
/// cannot work on an empty box.
Box cells_reading(const Window& window, const Box& box, const Shape& dst);
Range cells_reading(const Window& window, Dim dim, const Range& range, const Shape& dst);

/// How many cells beyond those of their own blocks neighbours read with cells_read(), on the side where it is more, if
/// src and dst are cut alike.
std::int64_t halo_read(const Window& window, Dim dim);
/// The same with cells_reading().
std::int64_t halo_reading(const Window& window, Dim dim);

/// The same window between the boxes `src` and `dst`: its paddings are relative to the ends of the boxes. The upper
/// padding is what the last dst cell reads beyond the box, and at least zero.
Window local_window(const Window& window, const Box& src, const Box& dst);

}  // namespace orthant::tensor
