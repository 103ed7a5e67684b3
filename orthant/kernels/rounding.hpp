#pragma once

#include <cstdint>

namespace orthant::kernels {

inline constexpr std::int64_t line_floats = 16;  ///< of a cache line

inline std::int64_t ceil_div(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }
inline std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

}  // namespace orthant::kernels
