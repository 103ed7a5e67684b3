#pragma once

#include "orthant/tensor/box.hpp"

#include <string>

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

/// A balanced cut of `extent` cells into `count` blocks: the first (extent % count) have one cell more.
std::int64_t block_begin(std::int64_t extent, int count, int index);

/// Who owns which box of a tensor. Ranks are numbered with w fastest, then h, d, c, n.
struct Distribution {
  Shape global;
  Grid grid;

  bool operator==(const Distribution&) const = default;
};

/// The box that `rank` owns; empty if there are more parts than cells.
Box owned_box(const Distribution& distribution, int rank);

}  // namespace orthant::tensor
