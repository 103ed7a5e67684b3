#include "orthant/tensor/distribution.hpp"

#include <algorithm>
#include <cassert>

namespace orthant::tensor {

int& Grid::operator[](Dim dim) {
  switch (dim) {
    case Dim::n: return n;
    case Dim::c: return c;
    case Dim::d: return d;
    case Dim::h: return h;
    case Dim::w: break;
  }
  return w;
}

int Grid::operator[](Dim dim) const {
  Grid copy = *this;
  return copy[dim];
}

int parts(const Grid& grid) { return grid.n * grid.c * grid.d * grid.h * grid.w; }

std::string to_text(const Grid& grid) {
  std::string text;
  for (const Dim dim : all_dims) {
    if (grid[dim] > 1) text += name_of(dim) + std::to_string(grid[dim]);
  }
  return text.empty() ? "1" : text;
}

std::int64_t block_begin(std::int64_t extent, int count, int index) {
  return extent / count * index + std::min<std::int64_t>(index, extent % count);
}

Box owned_box(const Distribution& distribution, int rank) {
  assert(rank >= 0 && rank < parts(distribution.grid));
  Box box;
  for (auto dim = all_dims.rbegin(); dim != all_dims.rend(); ++dim) {
    const int count = distribution.grid[*dim];
    const std::int64_t extent = distribution.global[*dim];
    box.lo[*dim] = block_begin(extent, count, rank % count);
    box.hi[*dim] = block_begin(extent, count, rank % count + 1);
    rank /= count;
  }
  return box;
}

}  // namespace orthant::tensor
