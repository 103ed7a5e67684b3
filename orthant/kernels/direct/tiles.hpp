#pragma once

#include <array>
#include <cstdint>

namespace orthant::kernels::direct {

/// Memory that later calls read, to be prefetched: `step` floats further each time.
struct Fetch {
  const float* from = nullptr;
  std::int64_t step = 0;
};

/// A stretch of the reduction: floats side by side in src, and as many weight vectors.
struct Run {
  std::int64_t src = 0;      ///< from TileCall::src
  std::int64_t weights = 0;  ///< from TileCall::weights
  std::int64_t steps = 0;    ///< floats per pixel; of sliding tiles per pixel and tap
  bool apart = false;        ///< sums are put aside before this run: rounding errors grow with the length of a sum
};

/// dst[p][o] = max(floor, bias[o] + sum over runs of src[p][k] * weights[k][o]) for p pixels and v vectors of o.
struct TileCall {
  const float* src = nullptr;
  std::int64_t src_step = 0;  ///< from pixel to pixel
  const Run* runs = nullptr;
  std::int64_t run_count = 0;
  std::int64_t tap_step = 0;       ///< sliding tiles: weights from tap to tap
  const float* weights = nullptr;  ///< v vectors per step
  const float* bias = nullptr;     ///< v vectors; read with `last`
  float* aside = nullptr;          ///< room for the tile where a run is `apart`
  float* dst = nullptr;
  std::int64_t dst_step = 0;
  std::int64_t tail = 0;  ///< lanes stored of the last vector
  float floor = 0;        ///< with `last`: 0 for ReLU, -infinity for no activation
  bool first = true;      ///< otherwise adds to what dst holds
  bool last = true;       ///< add the bias, apply the floor
  bool stream = false;    ///< write around the cache; dst and dst_step are whole aligned vectors
  Fetch fetch{};          ///< once per step
};

/// One row of pixels of a weight gradient.
struct RowPair {
  std::int64_t src = 0;
  std::int64_t diff = 0;
};

/// weights[t][o] += (or, without `add`, =) sum over rows and pixels of src[t] * diff[o] for t rows and v vectors of o.
struct WeightTileCall {
  const float* src = nullptr;
  std::int64_t src_step = 0;
  const float* diff = nullptr;
  std::int64_t diff_step = 0;
  const RowPair* rows = nullptr;
  std::int64_t row_count = 0;
  std::int64_t pixels = 0;  ///< per row
  float* weights = nullptr;
  std::int64_t weights_step = 0;
  std::int64_t src_row = 0;   ///< stacked tiles: from source row to source row
  std::int64_t tap_step = 0;  ///< sliding and stacked tiles: weight rows from tap to tap, from row to row
  std::int64_t tail = 0;      ///< lanes of the last vector
  bool add = true;
  bool stream = false;              ///< without `add`: write around the cache; weights are whole aligned vectors
  Fetch fetch_src{}, fetch_diff{};  ///< once per pixel
};

/// Sums `channels` floats per pixel into `sums`.
struct PixelSumCall {
  const float* diff = nullptr;
  std::int64_t diff_step = 0;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  float* sums = nullptr;
};

/// Taps along w that a sliding tile takes: each source pixel is read once for all of them.
inline constexpr int slide_taps = 3;
/// Rows of the source that a stacked tile takes, each with a few weight rows.
inline constexpr int stack_rows = 3;
inline constexpr int max_vectors = 4;
inline constexpr int max_rows = 28;
/// Room for the largest tile, in floats.
inline constexpr std::int64_t tile_floats = max_rows * max_vectors * 16;

using TileFunction = void (*)(const TileCall&);
using WeightTileFunction = void (*)(const WeightTileCall&);

/// The register tiles of this machine's instruction set. Entry [v - 1][p - 1] is for v vectors and p pixels (or weight
/// rows); it is null beyond rows[v - 1], what the register file holds.
struct Tiles {
  int lanes = 1;
  std::array<int, max_vectors> rows{};
  std::array<std::array<TileFunction, max_rows>, max_vectors> correlation{};
  /// For one vector, a stride of one and slide_taps neighbouring taps; every step of a run is done for all of these.
  int slide_rows = 0;
  std::array<TileFunction, max_rows> slide{};
};

struct WeightTiles {
  int lanes = 1;
  std::array<int, max_vectors> rows{};
  std::array<std::array<WeightTileFunction, max_rows>, max_vectors> outer{};
  /// The same for slide_taps taps at once: weights[tap * tap_step + t], where the diff of pixel x is multiplied by the
  /// src of pixel x + tap.
  int slide_rows = 0;
  std::array<WeightTileFunction, max_rows> slide{};
  /// The same for stack_rows rows of the source, src_row apart, with up to `stack_length` weight rows each.
  static constexpr int stack_length = 4;
  std::array<std::array<WeightTileFunction, stack_length>, 2> stack{};
  void (*pixel_sum)(const PixelSumCall&) = nullptr;
};

Tiles correlation_tiles();
WeightTiles weight_tiles();

}  // namespace orthant::kernels::direct
