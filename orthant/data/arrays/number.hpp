#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace orthant::data::arrays {

/// How a file stores one number, little-endian.
enum class NumberType { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

std::int64_t bytes_of(NumberType type);
bool is_integer(NumberType type);
const char* name_of(NumberType type);

/// Converts numbers, `stride` apart in memory: to[i * stride] = from[i]. `from` has count * bytes_of(type) bytes.
void convert(NumberType type, std::span<const std::byte> from, float* to, std::int64_t stride);
void convert(NumberType type, std::span<const std::byte> from, std::int64_t* to, std::int64_t stride);

/// True if none of the numbers, `stride` apart, is NaN or infinite.
bool all_finite(const float* numbers, std::int64_t count, std::int64_t stride = 1);

}  // namespace orthant::data::arrays
