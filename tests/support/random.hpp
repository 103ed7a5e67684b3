#pragma once

#include <cstdint>
#include <random>

namespace orthant::test {

/// Numbers that are the same on every machine; all of them are floats, whatever the type they are kept in.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// A whole number in [lo, hi].
  double integer(int lo, int hi) { return lo + static_cast<int>(engine_() % static_cast<std::uint64_t>(hi - lo + 1)); }
  /// A float in [lo, hi).
  double real(double lo, double hi) {
    const double unit = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return static_cast<double>(static_cast<float>(lo + (hi - lo) * unit));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace orthant::test
