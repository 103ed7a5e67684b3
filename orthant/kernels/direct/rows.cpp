#include "orthant/kernels/direct/rows.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::kernels::direct {
namespace {

bool w_needs_padding(const Axis& w) {
  const Range cells = cells_read(w, {0, w.count});
  return cells.lo < 0 || cells.hi > w.src_extent;
}

bool taps_are_neighbours(const Axis& w) {
  for (std::size_t k = 1; k < w.taps.size(); ++k) {
    if (w.taps[k].offset != w.taps[k - 1].offset + 1) return false;
  }
  return true;
}

}  // namespace

RowPlan plan_rows(const Correlation& correlation, const Blocks& blocks) {
  RowPlan plan{.cells = block_cells(correlation, blocks)};
  const tensor::Shape& strides = correlation.src.strides;
  plan.packed = taps(correlation) > 0 && ((strides.c != 1 && correlation.in > 1) || w_needs_padding(correlation.w));
  plan.pixel = plan.packed ? correlation.in : strides.w;
  plan.row = plan.packed ? plan.cells.w * plan.pixel : strides.h;
  plan.plane = plan.packed ? plan.cells.h * plan.row : strides.d;
  plan.runs_over_w = plan.pixel == correlation.in && taps_are_neighbours(correlation.w);
  return plan;
}

std::int64_t row_floats(const RowPlan& plan) { return plan.packed ? plan.cells.d * plan.plane : 0; }

Rows::Rows(const Correlation& correlation, const RowPlan& plan, const float* src, float* memory)
    : correlation_(correlation), plan_(plan), src_(src), memory_(memory) {}

void Rows::load(const Unit& unit) {
  const std::int64_t origin = correlation_.src.offset + unit.n * correlation_.src.strides.n +
                              unit.group * correlation_.in * correlation_.src.strides.c;
  if (!plan_.packed) {
    base_ = src_ + origin;
    return;
  }
  base_ = memory_;
  const bool same =
      loaded_ && unit.n == unit_.n && unit.group == unit_.group && unit.h.lo == unit_.h.lo && unit.w.lo == unit_.w.lo;
  const Range held = same ? planes_ : Range{};
  unit_ = unit;
  loaded_ = true;
  h_ = cells_read(correlation_.h, unit.h);
  w_ = cells_read(correlation_.w, unit.w);
  planes_ = cells_read(correlation_.d, unit.d);
  planes_ = {std::max<std::int64_t>(planes_.lo, 0), std::min(planes_.hi, correlation_.d.src_extent)};
  for (std::int64_t d = planes_.lo; d < planes_.hi; ++d) {
    if (d >= held.lo && d < held.hi) continue;
    pack_plane(d, memory_ + d % plan_.cells.d * plan_.plane);
  }
}

const float* Rows::start_of(const Unit& next) const {
  const tensor::Shape& strides = correlation_.src.strides;
  const auto first = [](const Axis& axis, const Range& outputs) {
    return std::max<std::int64_t>(cells_read(axis, outputs).lo, 0);
  };
  const bool same = plan_.packed && next.n == unit_.n && next.group == unit_.group && next.h.lo == unit_.h.lo &&
                    next.w.lo == unit_.w.lo;
  const std::int64_t d = same ? std::max(planes_.hi, first(correlation_.d, next.d)) : first(correlation_.d, next.d);
  return src_ + correlation_.src.offset + next.n * strides.n + next.group * correlation_.in * strides.c +
         d * strides.d + first(correlation_.h, next.h) * strides.h + first(correlation_.w, next.w) * strides.w;
}

std::int64_t Rows::floats_of(const Unit& next) const {
  const tensor::Shape& strides = correlation_.src.strides;
  const std::int64_t w = (next.w.hi - next.w.lo) * correlation_.w.src_step * strides.w;
  const std::int64_t rows = (next.h.hi - next.h.lo) * correlation_.h.src_step;
  const std::int64_t plane = rows > 1 ? rows * strides.h : w;
  return next.h.hi - next.h.lo == correlation_.h.count && correlation_.d.src_step > 1 ? plane * correlation_.d.src_step
                                                                                      : plane;
}

void Rows::pack_plane(std::int64_t d, float* to) const {
  const float* plane = src_ + correlation_.src.offset + unit_.n * correlation_.src.strides.n +
                       unit_.group * correlation_.in * correlation_.src.strides.c + d * correlation_.src.strides.d;
  for (std::int64_t h = h_.lo; h < h_.hi; ++h) {
    float* row = to + (h - h_.lo) * plan_.row;
    if (h < 0 || h >= correlation_.h.src_extent) {
      std::fill_n(row, plan_.row, 0.0F);
    } else {
      pack_row(plane + h * correlation_.src.strides.h, row);
    }
  }
}

void Rows::pack_row(const float* from, float* to) const {
  const std::int64_t in = correlation_.in;
  const Range inside{std::clamp<std::int64_t>(0, w_.lo, w_.hi), std::clamp(correlation_.w.src_extent, w_.lo, w_.hi)};
  std::fill_n(to, (inside.lo - w_.lo) * in, 0.0F);
  std::fill_n(to + (inside.hi - w_.lo) * in, (w_.hi - inside.hi) * in, 0.0F);
  to += (inside.lo - w_.lo) * in;
  const tensor::Shape& strides = correlation_.src.strides;
  if (strides.c == 1 && strides.w == in) {
    std::copy_n(from + inside.lo * in, (inside.hi - inside.lo) * in, to);
    return;
  }
  for (std::int64_t w = inside.lo; w < inside.hi; ++w, to += in) {
    for (std::int64_t c = 0; c < in; ++c) to[c] = from[w * strides.w + c * strides.c];
  }
}

std::int64_t Rows::offset(std::int64_t d, std::int64_t h, std::int64_t w) const {
  if (plan_.packed) return d % plan_.cells.d * plan_.plane + (h - h_.lo) * plan_.row + (w - w_.lo) * plan_.pixel;
  return d * plan_.plane + h * plan_.row + w * plan_.pixel;
}

}  // namespace orthant::kernels::direct
