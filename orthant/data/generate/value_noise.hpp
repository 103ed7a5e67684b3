#pragma once

#include <array>
#include <cstdint>

namespace orthant::data::generate {

/// A position in the unit cube: d, h, w.
using Point = std::array<double, 3>;

/// Smooth noise between -1 and 1: random numbers on a lattice of `per_side` points along each side of the unit cube,
/// interpolated smoothly. A function of key and position alone.
double value_noise(std::uint64_t key, double per_side, const Point& at);

}  // namespace orthant::data::generate
