#include "orthant/tensor/box.hpp"

namespace orthant::tensor {

Shape extents_of(const Box& box) {
  Shape extents;
  for (const Dim dim : all_dims) extents[dim] = box.hi[dim] - box.lo[dim];
  return extents;
}

Box whole(const Shape& shape) { return {.lo = {0, 0, 0, 0, 0}, .hi = shape}; }

}  // namespace orthant::tensor
