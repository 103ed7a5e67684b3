#pragma once

#include "orthant/tensor/box.hpp"

#include <cstdint>

namespace orthant::tensor {

/// Which cells of a source a cell of dst is made of, along one dim: at most two, with weights that add up to one, or
/// none, which is a zero. `src` and `dst` are extents of whole tensors.
struct AxisRule {
  enum class Kind {
    shift,    ///< cell first + step * i, or zero where there is none
    reflect,  ///< the same, mirrored at the first and last cell
    edge,     ///< the same, the first or last cell beyond them
    nearest,  ///< cell floor(i * scale)
    linear,   ///< between the cells around (i + 1/2) * scale - 1/2
    corners   ///< between the cells around i * (src - 1) / (dst - 1)
  };
  Kind kind = Kind::shift;
  std::int64_t first = 0, step = 1;
  double scale = 0;  ///< src cells per dst cell; 0: src / dst

  bool operator==(const AxisRule&) const = default;
};

/// (1 - weight) * src[lo] + weight * src[hi]; lo is negative for a zero.
struct AxisTap {
  std::int64_t lo = -1, hi = -1;
  float weight = 0;
};

AxisTap tap_of(const AxisRule& rule, std::int64_t cell, std::int64_t src, std::int64_t dst);

/// The cells of src that a range of dst cells reads, from the first that they or later ones read to the last that they
/// or earlier ones do: so both ends rise with the range, in mirrored cells, too. Empty if they are all zeros.
Range cells_of(const AxisRule& rule, Range cells, std::int64_t src, std::int64_t dst);

}  // namespace orthant::tensor
