#pragma once

#include "orthant/kernels/primitive.hpp"

#include <array>
#include <memory>

namespace orthant::kernels::winograd {

inline constexpr int max_points = 64;  ///< 4 per dim with three taps

/// True if a task is Winograd's: three taps or one per dim, stride and dilation 1, channels side by side.
bool applies(const model::ConvTask& task);

/// A stride-1 convolution cut into tiles: each is 2 cells of dst (and 4 of src) in the dims with three taps, else 1.
struct Tiling {
  tensor::Layout src, dst;
  std::array<bool, 3> three{};                         ///< d, h, w
  std::array<std::int64_t, 3> pad{};                   ///< src cell of tap 0 for dst cell 0 is -pad
  std::array<std::int64_t, 3> tiles{};                 ///< per dim
  std::array<std::int64_t, max_points> src_offsets{};  ///< of a patch's cells from its first one
  std::array<std::int64_t, 8> dst_offsets{};
  [[nodiscard]] std::int64_t count() const { return src.extents.n * tiles[0] * tiles[1] * tiles[2]; }
  [[nodiscard]] int points() const;  ///< 4 ^ (dims with three taps)
  [[nodiscard]] int cells() const;   ///< dst cells of a tile
  [[nodiscard]] int taps() const;
};

/// `src` and `dst` of the convolution to run; backward_data swaps them and mirrors the padding.
Tiling forward_tiling(const model::ConvTask& task);
Tiling backward_data_tiling(const model::ConvTask& task);

/// Pointers to the src patch (points() of them) or the dst cells (cells()) of one tile; cells outside are `outside`.
void src_cells(const Tiling& tiling, std::int64_t tile, const float* src, const float* outside, const float** cells);
template <class Float>
void dst_cells(const Tiling& tiling, std::int64_t tile, Float* dst, Float* outside, Float** cells);

/// Kernels for tasks that it applies to: forward and backward_data; backward_weights.
std::unique_ptr<Primitive> make_gather(const model::ConvTask& task, int threads);
std::unique_ptr<Primitive> make_weight_gradient(const model::ConvTask& task, int threads);

}  // namespace orthant::kernels::winograd
