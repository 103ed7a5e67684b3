#include "orthant/plan/spatial.hpp"

#include <algorithm>
#include <tuple>

namespace orthant::plan {
namespace {

using tensor::Dim;

/// Pixels on the cut faces of an inner block.
double halo(const tensor::Shape& shape, const tensor::Grid& grid) {
  double volume = 1;
  for (const Dim dim : tensor::spatial_dims) volume *= static_cast<double>(shape[dim]) / grid[dim];
  double sum = 0;
  for (const Dim dim : tensor::spatial_dims) {
    const int faces = std::min(grid[dim] - 1, 2);
    sum += faces * volume * grid[dim] / static_cast<double>(shape[dim]);
  }
  return sum;
}

}  // namespace

std::vector<tensor::Grid> spatial_grids(const tensor::Shape& shape, int parts) {
  std::vector<tensor::Grid> grids;
  for (int d = 1; d <= parts; ++d) {
    if (parts % d != 0) continue;
    for (int h = 1; h <= parts / d; ++h) {
      if ((parts / d) % h == 0) grids.push_back({.d = d, .h = h, .w = parts / d / h});
    }
  }
  std::stable_sort(grids.begin(), grids.end(), [&](const tensor::Grid& a, const tensor::Grid& b) {
    return std::tuple(halo(shape, a), -a.d, -a.h) < std::tuple(halo(shape, b), -b.d, -b.h);
  });
  return grids;
}

}  // namespace orthant::plan
