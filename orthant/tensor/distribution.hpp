#pragma once

#include "orthant/tensor/box.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace orthant::tensor {

/// How many parts each dim of a tensor is cut into; the product is the number of ranks that share it.
struct Grid {
  int n = 1, c = 1, d = 1, h = 1, w = 1;

  [[nodiscard]] const int& operator[](Dim dim) const {
    switch (dim) {
      case Dim::n: return n;
      case Dim::c: return c;
      case Dim::d: return d;
      case Dim::h: return h;
      case Dim::w: break;
    }
    return w;
  }
  [[nodiscard]] int& operator[](Dim dim) { return const_cast<int&>(std::as_const(*this)[dim]); }
  bool operator==(const Grid&) const = default;
};

int parts(const Grid& grid);
/// "n2d2h2"; "1" if nothing is cut.
std::string to_text(const Grid& grid);
/// The coordinates of part `index`: w is fastest, then h, d, c, n.
Grid coordinates(const Grid& grid, int index);
/// The part at these coordinates.
int index_of(const Grid& grid, const Grid& coordinates);

/// A balanced cut of `extent` cells into `count` blocks: the first (extent % count) have one cell more.
inline std::int64_t block_begin(std::int64_t extent, int count, int index) {
  const std::int64_t whole = extent / count;
  return whole * index + std::min<std::int64_t>(index, extent - whole * count);
}

/// Which rank owns which box of a tensor: the parts of the grid belong to consecutive ranks from `first_rank` on, and
/// all other ranks own nothing.
struct Distribution {
  Shape global;
  Grid grid;
  int first_rank = 0;
  /// Per dim the cell at which each block begins and, last, the end of the dim (parts + 1 numbers). An empty list means
  /// a balanced cut.
  std::array<std::vector<std::int64_t>, all_dims.size()> cuts{};

  bool operator==(const Distribution&) const = default;
};

/// The cells of block `index` along `dim`.
Range cut_block(const Distribution& distribution, Dim dim, int index);
inline Range block(const Distribution& distribution, Dim dim, int index) {
  if (distribution.grid[dim] == 1) return {0, distribution.global[dim]};  // most are not cut
  return cut_block(distribution, dim, index);
}
/// True if `rank` is one of the ranks that share the tensor (it may still own nothing).
bool takes_part(const Distribution& distribution, int rank);
/// The box that `rank` owns; Box{} if its block has no cells, because there are more parts than cells, or if it has no
/// block.
Box owned_box(const Distribution& distribution, int rank);

}  // namespace orthant::tensor
