#pragma once

#include "orthant/tensor/shape.hpp"

namespace orthant::tensor {

/// A half-open index range.
struct Range {
  std::int64_t lo = 0, hi = 0;

  bool operator==(const Range&) const = default;
};

/// A half-open index range per dim.
struct Box {
  Shape lo{0, 0, 0, 0, 0};
  Shape hi{0, 0, 0, 0, 0};

  [[nodiscard]] Range operator[](Dim dim) const { return {lo[dim], hi[dim]}; }
  void set(Dim dim, const Range& range) {
    lo[dim] = range.lo;
    hi[dim] = range.hi;
  }
  bool operator==(const Box&) const = default;
};

// Written out dim by dim: geometry does little else all the time.

inline Shape extents_of(const Box& box) {
  const auto& [lo, hi] = box;
  return {hi.n - lo.n, hi.c - lo.c, hi.d - lo.d, hi.h - lo.h, hi.w - lo.w};
}
Box whole(const Shape& shape);
inline bool is_empty(const Box& box) {
  const auto& [lo, hi] = box;
  return hi.n <= lo.n || hi.c <= lo.c || hi.d <= lo.d || hi.h <= lo.h || hi.w <= lo.w;
}
std::int64_t volume(const Box& box);

/// The intersection; Box{} if it is empty.
Box intersection(const Box& a, const Box& b);
/// The smallest box that contains both; empty boxes are ignored.
Box bounding(const Box& a, const Box& b);
/// True if `inner` is empty or lies in `outer`.
bool contains(const Box& outer, const Box& inner);
/// `box` in the coordinates of a tensor that begins at `origin`.
Box relative(const Box& box, const Shape& origin);

}  // namespace orthant::tensor
