#pragma once

#include "orthant/tensor/distribution.hpp"

#include <vector>

namespace orthant::plan {

/// All ways to cut d, h and w into `parts` together (n and c are 1), least halo of `shape` first; depth before height
/// before width where that is equal.
std::vector<tensor::Grid> spatial_grids(const tensor::Shape& shape, int parts);

}  // namespace orthant::plan
