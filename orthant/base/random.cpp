#include "orthant/base/random.hpp"

#include <cmath>
#include <numbers>

namespace orthant::base {

double normal(std::uint64_t key, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log1p(-uniform(key, 2 * index)));
  return radius * std::cos(2 * std::numbers::pi * uniform(key, 2 * index + 1));
}

}  // namespace orthant::base
