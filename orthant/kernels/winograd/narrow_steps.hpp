#pragma once

#include <array>
#include <cstdint>

namespace orthant::kernels::winograd {

// Winograd for a source of at most `narrow_channels` channels: its cells are padded to that many, so that vectors lie
// across cells instead of channels. Work goes by stretches, tiles side by side in w. A *line* is one point in d and h.

inline constexpr std::int64_t narrow_channels = 4;
inline constexpr std::int64_t points_w = 4;
/// Of one tile in one line: [point in w][channel].
inline constexpr std::int64_t tile_floats = points_w * narrow_channels;
inline constexpr std::int64_t max_lines = 16;

/// The rows of cells that some tiles read, d before h: [cell][channel].
using CellRows = std::array<const float*, max_lines>;

/// cells -> points.
struct PatchCall {
  CellRows rows{};
  std::int64_t tiles = 0;
  float* points = nullptr;  ///< [line][tile][point in w][channel]
  std::int64_t line = 0;    ///< floats of a line of points
};

/// points * weights -> sums for one vector of output channels; w is mapped back by the way.
struct ProductCall {
  const float* points = nullptr;
  std::int64_t line = 0;
  std::int64_t lines = 0, tiles = 0, channels = 0;
  const float* weights = nullptr;  ///< [line][channel][point in w][lane]
  float* sums = nullptr;           ///< [line][tile][2 cells in w][lane]
  std::int64_t sums_line = 0;
};

/// The rows of dst (or diff_dst) that a stretch meets, d before h; null outside. From cell to cell there are `step`
/// floats, and `cells` of them lie inside.
template <class Float>
struct TileRows {
  std::array<Float*, 4> first{};
  std::int64_t step = 0, cells = 0;
};

/// sums -> dst: d and h are mapped back, bias and activation applied.
struct FinishCall {
  const float* sums = nullptr;
  std::int64_t sums_line = 0;
  TileRows<float> dst;
  std::int64_t tail = 0;        ///< lanes stored
  const float* bias = nullptr;  ///< one vector of `tail` lanes, or null
  float slope = 1;              ///< factor of negative results
  bool stream = false;          ///< write around the cache; cells are whole aligned vectors
};

/// weights += points * diff_dst, summed over tiles, for one vector of channels. Points between two cells of diff_dst
/// count double per dim.
struct OuterCall {
  const float* points = nullptr;
  std::int64_t line = 0;
  std::int64_t tiles = 0, channels = 0;
  std::array<const float*, 4> diff{};  ///< the rows of the stretch, d before h, two whole vectors per tile
  std::int64_t diff_step = 0;          ///< from cell to cell
  float* weights = nullptr;            ///< [line][channel][point in w][lane]
};

/// Entries by whether d and h have three taps: [2 * d + h].
struct NarrowSteps {
  int lanes = 1;
  std::array<void (*)(const PatchCall&), 4> to_points{};
  void (*multiply)(const ProductCall&) = nullptr;
  std::array<void (*)(const FinishCall&), 4> finish{};
  std::array<void (*)(const OuterCall&), 4> outer{};
};

/// The entries are null where vectors have one lane only.
NarrowSteps narrow_steps();

}  // namespace orthant::kernels::winograd
