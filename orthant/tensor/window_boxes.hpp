#pragma once

#include "orthant/tensor/box.hpp"
#include "orthant/tensor/window.hpp"

namespace orthant::tensor {

/// The src cells that the dst cells of `box` look at, without the padding; `src` and `dst` are the global shapes.
/// Cells that no window looks at belong to the box before them, so that the boxes of all dst cells leave none out.
/// n and c are those of `box`.
Box cells_read(const Window& window, const Box& box, const Shape& src, const Shape& dst);

/// The adjoint: the dst cells whose windows look at src cells of `box`; at least one, so that a kernel has a place
/// to begin.
Box cells_reading(const Window& window, const Box& box, const Shape& dst);

/// How many cells beyond those of their own blocks neighbours read with cells_read(), on the side where it is more, if
/// src and dst are cut alike.
std::int64_t halo_read(const Window& window, Dim dim);
/// The same with cells_reading().
std::int64_t halo_reading(const Window& window, Dim dim);

/// The same window between the boxes `src` and `dst`: paddings count from the boxes' ends. Those above are what the
/// last dst cell looks at beyond the box, at least zero.
Window local_window(const Window& window, const Box& src, const Box& dst);

}  // namespace orthant::tensor
