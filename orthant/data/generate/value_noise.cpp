#include "orthant/data/generate/value_noise.hpp"

#include "orthant/base/random.hpp"

#include <cmath>

namespace orthant::data::generate {
namespace {

/// A number of the lattice; 21 bits per dim.
double lattice(std::uint64_t key, std::int64_t d, std::int64_t h, std::int64_t w) {
  constexpr std::int64_t offset = 1 << 20;
  const auto place = (static_cast<std::uint64_t>(d + offset) << 42U) | (static_cast<std::uint64_t>(h + offset) << 21U) |
                     static_cast<std::uint64_t>(w + offset);
  return 2 * base::uniform(key, place) - 1;
}

double smooth(double x) { return x * x * (3 - 2 * x); }
double between(double a, double b, double fraction) { return a + (b - a) * fraction; }

}  // namespace

double value_noise(std::uint64_t key, double per_side, const Point& at) {
  std::array<std::int64_t, 3> cell{};
  std::array<double, 3> fraction{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double place = std::floor(at[i] * per_side);
    cell[i] = static_cast<std::int64_t>(place);
    fraction[i] = smooth(at[i] * per_side - place);
  }
  std::array<double, 2> planes{};
  for (std::int64_t d = 0; d < 2; ++d) {
    std::array<double, 2> rows{};
    for (std::int64_t h = 0; h < 2; ++h) {
      rows[static_cast<std::size_t>(h)] = between(lattice(key, cell[0] + d, cell[1] + h, cell[2]),
                                                  lattice(key, cell[0] + d, cell[1] + h, cell[2] + 1), fraction[2]);
    }
    planes[static_cast<std::size_t>(d)] = between(rows[0], rows[1], fraction[1]);
  }
  return between(planes[0], planes[1], fraction[0]);
}

}  // namespace orthant::data::generate
