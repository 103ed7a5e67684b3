#pragma once

#include "orthant/kernels/winograd/narrow_steps.hpp"
#include "orthant/kernels/winograd/tiling.hpp"

namespace orthant::kernels::winograd {

/// Tiles side by side in w; `first` is the first of them.
struct Stretch {
  TileIndex first;
  std::int64_t tiles = 0;
};

/// A tiling cut into stretches, for a source of few channels.
class Stretches {
 public:
  Stretches(const Tiling& tiling, std::int64_t channels);

  [[nodiscard]] std::int64_t count() const {
    return tiling_.src.extents.n * tiling_.tiles[0] * tiling_.tiles[1] * per_row_;
  }
  [[nodiscard]] Stretch at(std::int64_t index) const;
  [[nodiscard]] std::int64_t most_tiles() const { return most_tiles_; }  ///< of a stretch
  [[nodiscard]] std::int64_t lines() const { return rows(4); }
  [[nodiscard]] std::size_t steps_entry() const;  ///< of NarrowSteps
  [[nodiscard]] std::int64_t dst_rows() const { return rows(2); }
  [[nodiscard]] std::int64_t cells_floats() const { return rows(4) * row_floats_; }

  /// Calls visit(rows, first tile, tiles) for parts of a stretch, with the rows of cells that PatchCall wants: in src
  /// where they lie well, else in `copies` (cells_floats() floats).
  template <class Visit>
  void for_each_part(const Stretch& stretch, const float* src, float* copies, Visit visit) const {
    const Inside inside = inside_of(stretch);
    if (inside.begin > 0) visit(copied(stretch, 0, inside.begin, src, copies), 0, inside.begin);
    if (inside.end > inside.begin)
      visit(in_place(stretch, inside.begin, src, copies), inside.begin, inside.end - inside.begin);
    if (stretch.tiles > inside.end)
      visit(copied(stretch, inside.end, stretch.tiles - inside.end, src, copies), inside.end,
            stretch.tiles - inside.end);
  }

  /// Where a stretch lies in dst, or diff_dst.
  template <class Float>
  [[nodiscard]] TileRows<Float> rows_of(const Stretch& stretch, Float* dst) const;

 private:
  [[nodiscard]] std::int64_t rows(std::int64_t where_three) const {
    return (tiling_.has_taps(0) ? where_three : 1) * (tiling_.has_taps(1) ? where_three : 1);
  }
  /// The tiles of a stretch whose rows can be read in place.
  struct Inside {
    std::int64_t begin, end;
  };
  [[nodiscard]] Inside inside_of(const Stretch& stretch) const;
  [[nodiscard]] CellRows in_place(const Stretch& stretch, std::int64_t tile, const float* src, float* copies) const;
  [[nodiscard]] CellRows copied(const Stretch& stretch, std::int64_t tile, std::int64_t tiles, const float* src,
                                float* copies) const;
  template <class Visit>
  void for_each_row(const Stretch& stretch, const float* src, Visit visit) const;
  void copy_row(const float* row, std::int64_t first, std::int64_t count, float* cells) const;

  Tiling tiling_;
  std::int64_t channels_;
  std::int64_t per_row_, most_tiles_, row_floats_;
};

}  // namespace orthant::kernels::winograd
