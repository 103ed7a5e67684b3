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
  Grid result{.n = 0, .c = 0, .d = 0, .h = 0, .w = 0};
  for (auto dim = all_dims.rbegin(); dim != all_dims.rend(); ++dim) {
    const int count = grid[*dim];
    if (count == 1) continue;  // most are not cut, and divisions are slow
    result[*dim] = index % count;
    index /= count;
  }
  return result;
}

int index_of(const Grid& grid, const Grid& coordinates) {
  int index = 0;
  for (const Dim dim : all_dims) index = index * grid[dim] + coordinates[dim];
  return index;
}

Range cut_block(const Distribution& distribution, Dim dim, int index) {
  const auto& cuts = distribution.cuts[static_cast<std::size_t>(dim)];
  if (!cuts.empty()) return {cuts[static_cast<std::size_t>(index)], cuts[static_cast<std::size_t>(index) + 1]};
  const std::int64_t extent = distribution.global[dim];
  const int count = distribution.grid[dim];
  const std::int64_t whole = extent / count;
  const std::int64_t begin = whole * index + std::min<std::int64_t>(index, extent - whole * count);
  return {begin, begin + whole + (index < extent - whole * count ? 1 : 0)};
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
