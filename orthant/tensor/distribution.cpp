#include "orthant/tensor/distribution.hpp"

#include <algorithm>

namespace orthant::tensor {

int parts(const Grid& grid) { return grid.n * grid.c * grid.d * grid.h * grid.w; }

std::string to_text(const Grid& grid) {
  std::string text;
  for (const Dim dim : all_dims) {
    if (grid[dim] > 1) text += name_of(dim) + std::to_string(grid[dim]);
  }
  return text.empty() ? "1" : text;
}

Grid coordinates(const Grid& grid, int index) {
  Grid result;
  for (auto dim = all_dims.rbegin(); dim != all_dims.rend(); ++dim) {
    result[*dim] = index % grid[*dim];
    index /= grid[*dim];
  }
  return result;
}

int index_of(const Grid& grid, const Grid& coordinates) {
  int index = 0;
  for (const Dim dim : all_dims) index = index * grid[dim] + coordinates[dim];
  return index;
}

Range block(const Distribution& distribution, Dim dim, int index) {
  const auto& cuts = distribution.cuts[static_cast<std::size_t>(dim)];
  if (!cuts.empty()) return {cuts[static_cast<std::size_t>(index)], cuts[static_cast<std::size_t>(index) + 1]};
  const std::int64_t extent = distribution.global[dim];
  const int count = distribution.grid[dim];
  return {block_begin(extent, count, index), block_begin(extent, count, index + 1)};
}

bool takes_part(const Distribution& distribution, int rank) {
  const int index = rank - distribution.first_rank;
  return index >= 0 && index < parts(distribution.grid);
}

Box owned_box(const Distribution& distribution, int rank) {
  if (!takes_part(distribution, rank)) return {};
  const Grid at = coordinates(distribution.grid, rank - distribution.first_rank);
  Box box;
  for (const Dim dim : all_dims) box.set(dim, block(distribution, dim, at[dim]));
  return is_empty(box) ? Box{} : box;
}

}  // namespace orthant::tensor
