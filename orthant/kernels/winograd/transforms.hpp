#pragma once

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

/// The maps of F(2,3) and F(3,2) in the dims where the window has three taps (4 points), identity in the others (1
/// point). All constants are powers of two.
struct Transforms {
  Map src_to_points = nullptr;      ///< 4 cells -> 4 points: a patch of src
  Map weights_to_points = nullptr;  ///< 3 taps -> 4 points
  Map points_to_dst = nullptr;      ///< 4 points -> 2 cells
  Map diff_to_points = nullptr;     ///< 2 cells -> 4 points: a tile of diff_dst
  Map points_to_weights = nullptr;  ///< 4 points -> 3 taps
};

/// `three` says per dim whether the window has three taps there; at least one must.
Transforms transforms(bool three_d, bool three_h, bool three_w);

}  // namespace orthant::kernels::winograd
