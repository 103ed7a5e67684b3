#include "orthant/tensor/box.hpp"

#include <algorithm>

namespace orthant::tensor {

Box whole(const Shape& shape) { return {.lo = {0, 0, 0, 0, 0}, .hi = shape}; }

std::int64_t volume(const Box& box) { return is_empty(box) ? 0 : volume(extents_of(box)); }

Box intersection(const Box& a, const Box& b) {
  const Box both{.lo = {std::max(a.lo.n, b.lo.n), std::max(a.lo.c, b.lo.c), std::max(a.lo.d, b.lo.d),
                        std::max(a.lo.h, b.lo.h), std::max(a.lo.w, b.lo.w)},
                 .hi = {std::min(a.hi.n, b.hi.n), std::min(a.hi.c, b.hi.c), std::min(a.hi.d, b.hi.d),
                        std::min(a.hi.h, b.hi.h), std::min(a.hi.w, b.hi.w)}};
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
  const auto moved = [&](const Shape& at) {
    return Shape{at.n - origin.n, at.c - origin.c, at.d - origin.d, at.h - origin.h, at.w - origin.w};
  };
  return {.lo = moved(box.lo), .hi = moved(box.hi)};
}

}  // namespace orthant::tensor
