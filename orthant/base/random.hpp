#pragma once

#include <cstdint>

namespace orthant::base {

/// A counter-based generator: a number is a function of the key and the index alone, so any rank can generate any part
/// of a random tensor. The bits are mixed as in splitmix64.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// A key for a stream of numbers; `keyed(keyed(seed, a), b)` differs for all a, b.
constexpr std::uint64_t keyed(std::uint64_t key, std::uint64_t value) { return mix(key ^ mix(value)); }

/// Uniform in [0, 1), 53 bits.
constexpr double uniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<double>(keyed(key, index) >> 11U) * 0x1.0p-53;
}

/// Standard normal (Box-Muller).
double normal(std::uint64_t key, std::uint64_t index);

}  // namespace orthant::base
