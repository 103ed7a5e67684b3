#pragma once

#include "orthant/tensor/box.hpp"

#include <vector>

namespace orthant::tensor {

/// The cells of `box` that are not in `hole`, as disjoint boxes.
std::vector<Box> difference(const Box& box, const Box& hole);

}  // namespace orthant::tensor
