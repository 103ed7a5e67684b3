#pragma once

#include "orthant/tensor/shape.hpp"

#include <cstdint>

namespace orthant::kernels::winograd {

/// A linear map over a small box of cells, the same for every channel: out[j][c] = sum_i map[j][i] * in[i][c].
/// Cells are given by pointers, so that padding, strides and clipped tiles need no code of their own.
struct MapCall {
  const float* const* in = nullptr;  ///< cells, w fastest
  std::int64_t in_offset = 0;        ///< added to each
  float* const* out = nullptr;
  std::int64_t out_offset = 0;
  std::int64_t channels = 0;
  const float* bias = nullptr;  ///< to_cells only: per channel, or null
  float slope = 1;              ///< to_cells only: factor of negative results
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
