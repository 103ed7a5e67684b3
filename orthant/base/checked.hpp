#pragma once

#include "orthant/base/error.hpp"

#include <cstdint>
#include <initializer_list>

namespace orthant::base {

/// Sums and products of sizes that may come from a user. An overflow throws Error and never wraps around.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    fail(Exit::bad_data, "size {} + {} overflows 64 bits; use smaller sizes", a, b);
  return sum;
}

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    fail(Exit::bad_data, "size {} x {} overflows 64 bits; use smaller sizes", a, b);
  return product;
}

inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) product = checked_mul(product, factor);
  return product;
}

}  // namespace orthant::base
