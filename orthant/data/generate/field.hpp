#pragma once

#include "orthant/tensor/box.hpp"

#include <array>
#include <span>
#include <vector>

namespace orthant::data::generate {

/// amplitude * cos(k . position + phase), position in cells.
struct Wave {
  std::array<double, 3> k{};  ///< d, h, w; radians per cell
  double phase = 0;
  double amplitude = 0;
};

/// One channel of a smooth volume. The slope is the rise from one end of each dim to the other.
struct Field {
  double level = 0;
  std::array<double, 3> slope{};
  std::vector<Wave> waves;
};

/// Writes the fields (one per channel) over `box` of a volume of `extents`, channels-last.
void draw(std::span<const Field> fields, const tensor::Extent3& extents, const tensor::Box& box, std::span<float> into);

}  // namespace orthant::data::generate
