#include "orthant/tensor/axis_rule.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::tensor {
namespace {

using Kind = AxisRule::Kind;

AxisTap one_cell(std::int64_t cell) { return {.lo = cell, .hi = cell, .weight = 0}; }

AxisTap between(double position, std::int64_t src) {
  const auto lo = std::min(static_cast<std::int64_t>(position), src - 1);
  return {.lo = lo, .hi = std::min(lo + 1, src - 1), .weight = static_cast<float>(position - static_cast<double>(lo))};
}

/// Mirrored once at either side; more than that does not occur.
std::int64_t mirrored(std::int64_t cell, std::int64_t src) {
  if (cell < 0) cell = -cell;
  return cell < src ? cell : 2 * (src - 1) - cell;
}

}  // namespace

AxisTap tap_of(const AxisRule& rule, std::int64_t cell, std::int64_t src, std::int64_t dst) {
  const std::int64_t at = rule.first + rule.step * cell;
  const auto index = static_cast<double>(cell);
  const double scale = rule.scale > 0 ? rule.scale : static_cast<double>(src) / static_cast<double>(dst);
  switch (rule.kind) {
    case Kind::shift: return at >= 0 && at < src ? one_cell(at) : AxisTap{};
    case Kind::reflect: return one_cell(mirrored(at, src));
    case Kind::edge: return one_cell(std::clamp<std::int64_t>(at, 0, src - 1));
    // In float, as PyTorch: the product may lie just below a whole number that it would be exactly.
    case Kind::nearest: {
      const auto position = static_cast<std::int64_t>(static_cast<float>(cell) * static_cast<float>(scale));
      return one_cell(std::min(position, src - 1));
    }
    case Kind::linear: return between(std::max(0.0, (index + 0.5) * scale - 0.5), src);
    case Kind::corners:
      return between(dst > 1 ? index * static_cast<double>(src - 1) / static_cast<double>(dst - 1) : 0, src);
  }
  return {};
}

Range cells_of(const AxisRule& rule, Range cells, std::int64_t src, std::int64_t dst) {
  Range all{src, 0};
  for (std::int64_t cell = cells.lo; cell < dst; ++cell) {
    const AxisTap tap = tap_of(rule, cell, src, dst);
    if (tap.lo >= 0) all.lo = std::min(all.lo, tap.lo);
  }
  for (std::int64_t cell = 0; cell < cells.hi; ++cell) {
    const AxisTap tap = tap_of(rule, cell, src, dst);
    if (tap.lo >= 0) all.hi = std::max(all.hi, (tap.weight == 0 ? tap.lo : tap.hi) + 1);
  }
  return all;
}

}  // namespace orthant::tensor
