#pragma once

#include "orthant/tensor/box.hpp"

#include <vector>

namespace orthant::tensor {

/// What is left of `box` when `hole` is taken out, as boxes that share no cell.
std::vector<Box> difference(const Box& box, const Box& hole);

}  // namespace orthant::tensor
