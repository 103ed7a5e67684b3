#include "orthant/data/arrays/number.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace orthant::data::arrays {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as files have them, in little-endian order");

struct Half {
  std::uint16_t bits;
  explicit operator float() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    float magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    if (exponent == 0) magnitude = std::ldexp(static_cast<float>(fraction), -24);
    if (exponent == 31) magnitude = fraction == 0 ? HUGE_VALF : std::nanf("");
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
  explicit operator std::int64_t() const { return static_cast<std::int64_t>(static_cast<float>(*this)); }
};

struct Bfloat {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }
  explicit operator std::int64_t() const { return static_cast<std::int64_t>(static_cast<float>(*this)); }
};

template <class From, class To>
void convert_all(std::span<const std::byte> from, To* to, std::int64_t stride) {
  const auto count = static_cast<std::int64_t>(from.size() / sizeof(From));
  const auto item = [&](std::int64_t i) {
    From value{};
    std::memcpy(&value, from.data() + static_cast<std::size_t>(i) * sizeof(From), sizeof(From));
    return static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): int8 is a number here
  };
  // A separate loop for stride 1, which compilers can vectorise.
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = item(i);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] = item(i);
}

template <class To>
void convert_any(NumberType type, std::span<const std::byte> from, To* to, std::int64_t stride) {
  assert(static_cast<std::int64_t>(from.size()) % bytes_of(type) == 0);
  switch (type) {
    case NumberType::f16: return convert_all<Half>(from, to, stride);
    case NumberType::bf16: return convert_all<Bfloat>(from, to, stride);
    case NumberType::f32: return convert_all<float>(from, to, stride);
    case NumberType::f64: return convert_all<double>(from, to, stride);
    case NumberType::i8: return convert_all<std::int8_t>(from, to, stride);
    case NumberType::i16: return convert_all<std::int16_t>(from, to, stride);
    case NumberType::i32: return convert_all<std::int32_t>(from, to, stride);
    case NumberType::i64: return convert_all<std::int64_t>(from, to, stride);
    case NumberType::u8:
    case NumberType::boolean: return convert_all<std::uint8_t>(from, to, stride);
    case NumberType::u16: return convert_all<std::uint16_t>(from, to, stride);
    case NumberType::u32: return convert_all<std::uint32_t>(from, to, stride);
    case NumberType::u64: return convert_all<std::uint64_t>(from, to, stride);
  }
}

/// True if a float is NaN or infinite: all bits of its exponent are set then.
bool is_bad(const float& number) {
  constexpr std::uint32_t exponent = 0x7F800000U;
  return (std::bit_cast<std::uint32_t>(number) & exponent) == exponent;
}

}  // namespace

bool all_finite(const float* numbers, std::int64_t count, std::int64_t stride) {
  std::uint32_t bad = 0;
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) bad |= is_bad(numbers[i]) ? 1U : 0U;
  } else {
    for (std::int64_t i = 0; i < count; ++i) bad |= is_bad(numbers[i * stride]) ? 1U : 0U;
  }
  return bad == 0;
}

std::int64_t bytes_of(NumberType type) {
  switch (type) {
    case NumberType::i8:
    case NumberType::u8:
    case NumberType::boolean: return 1;
    case NumberType::f16:
    case NumberType::bf16:
    case NumberType::i16:
    case NumberType::u16: return 2;
    case NumberType::f32:
    case NumberType::i32:
    case NumberType::u32: return 4;
    case NumberType::f64:
    case NumberType::i64:
    case NumberType::u64: break;
  }
  return 8;
}

bool is_integer(NumberType type) {
  switch (type) {
    case NumberType::f16:
    case NumberType::bf16:
    case NumberType::f32:
    case NumberType::f64: return false;
    default: return true;
  }
}

const char* name_of(NumberType type) {
  switch (type) {
    case NumberType::f16: return "float16";
    case NumberType::bf16: return "bfloat16";
    case NumberType::f32: return "float32";
    case NumberType::f64: return "float64";
    case NumberType::i8: return "int8";
    case NumberType::i16: return "int16";
    case NumberType::i32: return "int32";
    case NumberType::i64: return "int64";
    case NumberType::u8: return "uint8";
    case NumberType::u16: return "uint16";
    case NumberType::u32: return "uint32";
    case NumberType::u64: return "uint64";
    case NumberType::boolean: break;
  }
  return "bool";
}

void convert(NumberType type, std::span<const std::byte> from, float* to, std::int64_t stride) {
  convert_any(type, from, to, stride);
}

void convert(NumberType type, std::span<const std::byte> from, std::int64_t* to, std::int64_t stride) {
  convert_any(type, from, to, stride);
}

}  // namespace orthant::data::arrays
