#pragma once

#include "orthant/tensor/box.hpp"

#include <array>
#include <string>
#include <vector>

namespace orthant::tensor {

/// How many parts each dim of a tensor is cut into; the product is the number of ranks that share it.
struct Grid {
  int n = 1, c = 1, d = 1, h = 1, w = 1;

  [[nodiscard]] int operator[](Dim dim) const;
  [[nodiscard]] int& operator[](Dim dim);
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
std::int64_t block_begin(std::int64_t extent, int count, int index);

/// Who owns which box of a tensor: the parts of the grid belong to the ranks from `first_rank` on, other ranks own
/// nothing.
struct Distribution {
  Shape global;
  Grid grid;
  int first_rank = 0;
  /// Per dim where the blocks begin and, last, end (parts + 1 numbers); balanced where empty.
  std::array<std::vector<std::int64_t>, all_dims.size()> cuts{};

  bool operator==(const Distribution&) const = default;
};

/// The cells of block `index` along `dim`.
Range block(const Distribution& distribution, Dim dim, int index);
/// True if `rank` is one of the ranks that share the tensor (it may still own nothing).
bool takes_part(const Distribution& distribution, int rank);
/// The box that `rank` owns; Box{} if there are more parts than cells or the rank takes no part.
Box owned_box(const Distribution& distribution, int rank);

}  // namespace orthant::tensor
