#pragma once

#include "orthant/tensor/shape.hpp"

namespace orthant::tensor {

/// A half-open index range per dim.
struct Box {
  Shape lo{0, 0, 0, 0, 0};
  Shape hi{0, 0, 0, 0, 0};

  bool operator==(const Box&) const = default;
};

Shape extents_of(const Box& box);
Box whole(const Shape& shape);

}  // namespace orthant::tensor
