#pragma once

#include <array>
#include <cstdint>

namespace orthant::kernels::winograd {

/// From cell to cell of a small box, in floats.
struct Strides {
  std::int64_t d = 0, h = 0, w = 0;
};

/// A linear map over small boxes of cells, the same for every channel: out[j][c] = sum_i map[j][i] * in[i][c].
/// Cells lie `Strides` apart; where a box is clipped they are given one by one, w fastest.
struct MapCall {
  const float* in = nullptr;
  Strides in_strides{};
  const float* const* in_cells = nullptr;  ///< where `in` is null
  float* out = nullptr;
  Strides out_strides{};
  float* const* out_cells = nullptr;  ///< where `out` is null
  std::int64_t channels = 0;
  std::int64_t boxes = 1;                  ///< mapped one after the other
  std::int64_t in_next = 0, out_next = 0;  ///< from box to box
  const float* bias = nullptr;             ///< points_to_dst only: per channel, or null
  float slope = 1;                         ///< points_to_dst only: factor of negative results
  bool stream = false;  ///< maps of weights only: write around the cache; `out` is whole aligned vectors
};

using Map = void (*)(const MapCall&);

/// How a dim is tiled: a tile has so many cells of dst, each of so many taps. F(cells, taps) multiplies once per point.
struct Side {
  int cells = 1, taps = 1;
  [[nodiscard]] int points() const { return cells + taps - 1; }
  bool operator==(const Side&) const = default;
};
inline constexpr Side one_cell{};
inline constexpr Side two_of_three{.cells = 2, .taps = 3};   ///< F(2,3): all constants are powers of two
inline constexpr Side four_of_three{.cells = 4, .taps = 3};  ///< F(4,3), and F(2,5): the points are not whole numbers
inline constexpr Side two_of_five{.cells = 2, .taps = 5};
using Sides = std::array<Side, 3>;  ///< d, h, w

/// The maps of a tile, per dim those of its side.
struct Transforms {
  Map src_to_points = nullptr;      ///< a patch of src: as many cells as points
  Map weights_to_points = nullptr;  ///< taps -> points
  Map points_to_dst = nullptr;      ///< points -> cells
  Map diff_to_points = nullptr;     ///< a tile of diff_dst: cells -> points
  Map points_to_weights = nullptr;  ///< points -> taps
};

/// Null for sides that have no maps: there are those of one or two_of_three in any dim, and of four_of_three or
/// two_of_five in both h and w.
const Transforms* find_transforms(const Sides& sides);

}  // namespace orthant::kernels::winograd
