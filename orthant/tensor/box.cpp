#include "orthant/tensor/box.hpp"

#include <algorithm>

namespace orthant::tensor {

void Box::set(Dim dim, const Range& range) {
  lo[dim] = range.lo;
  hi[dim] = range.hi;
}

Shape extents_of(const Box& box) {
  Shape extents;
  for (const Dim dim : all_dims) extents[dim] = box.hi[dim] - box.lo[dim];
  return extents;
}

Box whole(const Shape& shape) { return {.lo = {0, 0, 0, 0, 0}, .hi = shape}; }

bool is_empty(const Box& box) {
  return std::any_of(all_dims.begin(), all_dims.end(), [&](Dim dim) { return box.hi[dim] <= box.lo[dim]; });
}

std::int64_t volume(const Box& box) { return is_empty(box) ? 0 : volume(extents_of(box)); }

Box intersection(const Box& a, const Box& b) {
  Box both;
  for (const Dim dim : all_dims) {
    both.lo[dim] = std::max(a.lo[dim], b.lo[dim]);
    both.hi[dim] = std::min(a.hi[dim], b.hi[dim]);
  }
  return is_empty(both) ? Box{} : both;
}

Box bounding(const Box& a, const Box& b) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  Box around;
  for (const Dim dim : all_dims) {
    around.lo[dim] = std::min(a.lo[dim], b.lo[dim]);
    around.hi[dim] = std::max(a.hi[dim], b.hi[dim]);
  }
  return around;
}

bool contains(const Box& outer, const Box& inner) { return is_empty(inner) || intersection(outer, inner) == inner; }

Box relative(const Box& box, const Shape& origin) {
  Box moved = box;
  for (const Dim dim : all_dims) {
    moved.lo[dim] -= origin[dim];
    moved.hi[dim] -= origin[dim];
  }
  return moved;
}

}  // namespace orthant::tensor
