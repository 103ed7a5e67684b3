#include "orthant/kernels/winograd/stretches.hpp"

#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

// Points and sums of a stretch stay in the first-level cache: 3 KiB per tile.
constexpr std::int64_t stretch_tiles = 12;

bool is_inside(std::int64_t index, std::int64_t extent) { return index >= 0 && index < extent; }

}  // namespace

Stretches::Stretches(const Tiling& tiling, std::int64_t channels)
    : tiling_(tiling), channels_(channels), per_row_(ceil_div(tiling.tiles[2], stretch_tiles)) {
  most_tiles_ = ceil_div(tiling.tiles[2], per_row_);
  row_floats_ = round_up((2 * most_tiles_ + 2) * narrow_channels, line_floats);
}

Stretch Stretches::at(std::int64_t index) const {
  const int part = static_cast<int>(index % per_row_);
  const std::int64_t row = index / per_row_;
  const std::int64_t first = share(tiling_.tiles[2], part, static_cast<int>(per_row_));
  return {.first = tiling_.tile_index(row * tiling_.tiles[2] + first),
          .tiles = share(tiling_.tiles[2], part + 1, static_cast<int>(per_row_)) - first};
}

std::size_t Stretches::steps_entry() const { return (tiling_.has_taps(0) ? 2 : 0) + (tiling_.has_taps(1) ? 1 : 0); }

Stretches::Inside Stretches::inside_of(const Stretch& stretch) const {
  if (channels_ != narrow_channels || tiling_.src.strides.w != narrow_channels) return {stretch.tiles, stretch.tiles};
  const std::int64_t first = stretch.first.tile[2];
  const std::int64_t cells = tiling_.src.extents.w + tiling_.pad[2] - 2;  // tile t ends at cell 2 * t + 2 of these
  const std::int64_t begin =
      std::clamp<std::int64_t>(ceil_div(std::max<std::int64_t>(tiling_.pad[2], 0), 2) - first, 0, stretch.tiles);
  return {begin, std::clamp<std::int64_t>(std::max<std::int64_t>(cells, 0) / 2 - first, begin, stretch.tiles)};
}

/// Calls visit(row) for every row of cells; null is a row outside.
template <class Visit>
void Stretches::for_each_row(const Stretch& stretch, const float* src, Visit visit) const {
  const auto& [n, tile] = stretch.first;
  const tensor::Shape& extents = tiling_.src.extents;
  const std::int64_t first_d = tile[0] * (tiling_.has_taps(0) ? 2 : 1) - tiling_.pad[0];
  const std::int64_t first_h = tile[1] * (tiling_.has_taps(1) ? 2 : 1) - tiling_.pad[1];
  for (std::int64_t d = first_d; d < first_d + (tiling_.has_taps(0) ? 4 : 1); ++d) {
    for (std::int64_t h = first_h; h < first_h + (tiling_.has_taps(1) ? 4 : 1); ++h) {
      const bool inside = is_inside(d, extents.d) && is_inside(h, extents.h);
      visit(inside ? src + offset_of(tiling_.src, n, d, h, 0) : nullptr);
    }
  }
}

CellRows Stretches::in_place(const Stretch& stretch, std::int64_t tile, const float* src, float* copies) const {
  const std::int64_t first = 2 * (stretch.first.tile[2] + tile) - tiling_.pad[2];
  CellRows rows{};
  auto* next = rows.begin();
  bool zeros = false;
  for_each_row(stretch, src, [&](const float* row) {
    if (row == nullptr && !zeros) std::fill_n(copies, row_floats_, 0.0F);
    zeros = zeros || row == nullptr;
    *next++ = row == nullptr ? copies : row + first * narrow_channels;
  });
  return rows;
}

CellRows Stretches::copied(const Stretch& stretch, std::int64_t tile, std::int64_t tiles, const float* src,
                           float* copies) const {
  const std::int64_t first = 2 * (stretch.first.tile[2] + tile) - tiling_.pad[2];
  CellRows rows{};
  auto* next = rows.begin();
  for_each_row(stretch, src, [&](const float* row) {
    copy_row(row, first, 2 * tiles + 2, copies);
    *next++ = copies;
    copies += row_floats_;
  });
  return rows;
}

/// `count` cells of a row from cell `first` on.
void Stretches::copy_row(const float* row, std::int64_t first, std::int64_t count, float* cells) const {
  const std::int64_t begin = row == nullptr ? count : std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t end =
      row == nullptr ? count : std::clamp<std::int64_t>(tiling_.src.extents.w - first, begin, count);
  std::fill_n(cells, begin * narrow_channels, 0.0F);
  std::fill_n(cells + end * narrow_channels, (count - end) * narrow_channels, 0.0F);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* const from = row + (first + i) * tiling_.src.strides.w;
    if (channels_ == narrow_channels) {
      std::copy_n(from, narrow_channels, cells + i * narrow_channels);
    } else {
      std::copy_n(from, channels_, cells + i * narrow_channels);
    }
  }
}

template <class Float>
TileRows<Float> Stretches::rows_of(const Stretch& stretch, Float* dst) const {
  const auto& [n, tile] = stretch.first;
  const tensor::Layout& layout = tiling_.dst;
  const std::int64_t w = 2 * tile[2];
  TileRows<Float> rows{.step = layout.strides.w, .cells = std::min(2 * stretch.tiles, layout.extents.w - w)};
  const std::int64_t h_cells = tiling_.has_taps(1) ? 2 : 1;
  for (std::int64_t i = 0; i < dst_rows(); ++i) {
    const std::int64_t d = tile[0] * (tiling_.has_taps(0) ? 2 : 1) + i / h_cells;
    const std::int64_t h = tile[1] * h_cells + i % h_cells;
    if (d >= layout.extents.d || h >= layout.extents.h) continue;
    rows.first[static_cast<std::size_t>(i)] = dst + offset_of(layout, n, d, h, w);
  }
  return rows;
}

template TileRows<float> Stretches::rows_of(const Stretch&, float*) const;
template TileRows<const float> Stretches::rows_of(const Stretch&, const float*) const;

}  // namespace orthant::kernels::winograd
