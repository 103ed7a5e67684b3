#pragma once

#include "orthant/kernels/winograd/transforms.hpp"
#include "orthant/model/task.hpp"

#include <array>
#include <vector>

namespace orthant::kernels::winograd {

inline constexpr int max_points = 144;  ///< 4 x 6 x 6
inline constexpr int max_cells = 32;    ///< 2 x 4 x 4

/// The offset of channel 0 of a cell.
inline std::int64_t offset_of(const tensor::Layout& layout, std::int64_t n, std::int64_t d, std::int64_t h,
                              std::int64_t w) {
  const tensor::Shape& strides = layout.strides;
  return layout.offset + n * strides.n + d * strides.d + h * strides.h + w * strides.w;
}

/// The sample of a tile, and its index in each spatial dim.
struct TileIndex {
  std::int64_t n = 0;
  std::array<std::int64_t, 3> tile{};  ///< d, h, w
};

/// Small tiles have two cells of dst in the dims with three taps. Large ones have, in h and w, six points: four cells
/// of three taps or two of five.
enum class TileSize { small, large };

/// A stride-1 convolution cut into tiles.
struct Tiling {
  tensor::Layout src, dst;
  Sides sides{};                        ///< d, h, w
  std::array<std::int64_t, 3> pad{};    ///< src cell of tap 0 for dst cell 0 is -pad
  std::array<std::int64_t, 3> tiles{};  ///< per dim
  Transforms maps;
  [[nodiscard]] std::int64_t count() const { return src.extents.n * tiles[0] * tiles[1] * tiles[2]; }
  [[nodiscard]] TileIndex tile_index(std::int64_t tile) const;
  [[nodiscard]] bool has_taps(std::size_t dim) const { return sides[dim].taps > 1; }
  [[nodiscard]] int points() const;  ///< cells of src that a tile reads
  [[nodiscard]] int cells() const;   ///< cells of dst of a tile
  [[nodiscard]] int taps() const;
  /// Strides between points or taps that are `step` apart, w fastest.
  [[nodiscard]] Strides point_strides(std::int64_t step) const;
  [[nodiscard]] Strides tap_strides(std::int64_t step) const;
};

/// `src` and `dst` of the convolution to run; backward_data swaps them and mirrors the padding.
Tiling forward_tiling(const model::ConvTask& task, TileSize size);
Tiling backward_data_tiling(const model::ConvTask& task, TileSize size);
/// The one of these that belongs to the task's pass.
Tiling correlation_tiling(const model::ConvTask& task, TileSize size);

/// How tiles of this size cover a window. There may be no maps for it.
Sides sides_of(const tensor::Window& window, TileSize size);

/// The tiling of a part of dst. Weights are transformed once, for the whole; `points` says which of the whole tiling's
/// points are those of the part.
struct SubTiling {
  Tiling tiling;
  std::vector<int> points;
};

/// The first and the last plane of dst across a dim of two_of_three become parts of their own if only one of their taps
/// lies inside src and the rest has fewer tiles without them: such a plane needs a quarter of the points. The gradients
/// that a rank computes for its neighbours' cells are such planes.
std::vector<SubTiling> cut_off_planes(const Tiling& tiling);

/// Tiles that a thread transforms and multiplies at a time.
struct Block {
  std::int64_t first = 0, tiles = 0;
};

/// The points of a block's tiles for some channels: `point_step` from point to point, `tile_step` from tile to tile.
template <class Float>
struct Points {
  Float* memory = nullptr;
  std::int64_t point_step = 0, tile_step = 0;
  std::int64_t channels = 0;
};

/// Maps patches of src, or tiles of diff_dst, to points. `zeros` stands for cells outside.
void src_to_points(const Tiling& tiling, const Block& block, const float* src, const float* zeros,
                   const Points<float>& points);
void diff_to_points(const Tiling& tiling, const Block& block, const float* diff, const float* zeros,
                    const Points<float>& points);

/// What becomes of points on the way to dst.
struct Finish {
  const float* bias = nullptr;  ///< per channel, or null
  float slope = 1;              ///< factor of negative results
  float* outside = nullptr;     ///< receives cells outside
};
void points_to_dst(const Tiling& tiling, const Block& block, const Points<const float>& points, float* dst,
                   const Finish& finish);

}  // namespace orthant::kernels::winograd
