#pragma once

#include "orthant/kernels/direct/geometry.hpp"

namespace orthant::kernels::direct {

/// How the rows of the source are reached: in place, or copied with zeros where the window sees padding in h and w and
/// with channels side by side. Depth planes that the next unit shares stay where they are.
struct RowPlan {
  bool packed = false;
  tensor::Extent3 cells;     ///< of a unit
  std::int64_t pixel = 0;    ///< floats from cell to cell
  std::int64_t row = 0;      ///< from row to row
  std::int64_t plane = 0;    ///< from plane to plane
  bool runs_over_w = false;  ///< taps along w are side by side with their channels
};
RowPlan plan_rows(const Correlation& correlation, const Blocks& blocks);
/// Floats of memory per thread.
std::int64_t row_floats(const RowPlan& plan);

/// One thread's view of the source rows of one unit at a time.
class Rows {
 public:
  /// `memory` has row_floats(plan) floats, or is null if the rows are not packed.
  Rows(const Correlation& correlation, const RowPlan& plan, const float* src, float* memory);

  void load(const Unit& unit);
  /// Where the part of the source begins that `next` reads and this unit has not packed already.
  [[nodiscard]] const float* start_of(const Unit& next) const;
  [[nodiscard]] std::int64_t floats_of(const Unit& next) const;
  [[nodiscard]] const float* base() const { return base_; }
  /// Offset from base() of the cell (d, h, w), which must be in the source along d, and along h too unless the rows are
  /// packed.
  [[nodiscard]] std::int64_t offset(std::int64_t d, std::int64_t h, std::int64_t w) const;

 private:
  void pack_plane(std::int64_t d, float* to) const;
  void pack_row(const float* from, float* to) const;

  const Correlation& correlation_;
  const RowPlan& plan_;
  const float* src_;
  float* memory_;
  const float* base_ = nullptr;
  Unit unit_;
  bool loaded_ = false;
  Range planes_, h_, w_;
};

}  // namespace orthant::kernels::direct
