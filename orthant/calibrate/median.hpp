#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace orthant::calibrate {

/// Of at least one number; of an even count the larger of the two in the middle.
inline double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace orthant::calibrate
