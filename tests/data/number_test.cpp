#include "orthant/data/arrays/number.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace orthant {
namespace {

using data::arrays::NumberType;

template <class T>
std::vector<float> floats(NumberType type, std::vector<T> values) {
  std::vector<float> out(values.size());
  data::arrays::convert(type, std::as_bytes(std::span(values)), out.data(), 1);
  return out;
}

TEST(Number, ConvertsEveryTypeToFloat) {
  EXPECT_EQ(floats<float>(NumberType::f32, {1.5F, -2}), (std::vector<float>{1.5F, -2}));
  EXPECT_EQ(floats<double>(NumberType::f64, {1.5, -2}), (std::vector<float>{1.5F, -2}));
  EXPECT_EQ(floats<std::int8_t>(NumberType::i8, {-128, 127}), (std::vector<float>{-128, 127}));
  EXPECT_EQ(floats<std::int16_t>(NumberType::i16, {-32768, 7}), (std::vector<float>{-32768, 7}));
  EXPECT_EQ(floats<std::int32_t>(NumberType::i32, {-70000, 7}), (std::vector<float>{-70000, 7}));
  EXPECT_EQ(floats<std::int64_t>(NumberType::i64, {-70000, 7}), (std::vector<float>{-70000, 7}));
  EXPECT_EQ(floats<std::uint8_t>(NumberType::u8, {255, 0}), (std::vector<float>{255, 0}));
  EXPECT_EQ(floats<std::uint8_t>(NumberType::boolean, {1, 0}), (std::vector<float>{1, 0}));
  EXPECT_EQ(floats<std::uint16_t>(NumberType::u16, {65535, 0}), (std::vector<float>{65535, 0}));
  EXPECT_EQ(floats<std::uint32_t>(NumberType::u32, {1U << 31U, 0}), (std::vector<float>{2147483648.0F, 0}));
  EXPECT_EQ(floats<std::uint64_t>(NumberType::u64, {1ULL << 40U, 0}), (std::vector<float>{1099511627776.0F, 0}));
}

TEST(Number, ConvertsHalfPrecision) {
  const std::vector<std::uint16_t> bits{0x3C00, 0xC000, 0x0001, 0x03FF, 0x7BFF, 0x8000, 0x3555};
  const std::vector<float> expected{1, -2, 0x1p-24F, 1023 * 0x1p-24F, 65504, -0.0F, 0.333251953125F};

  EXPECT_EQ(floats(NumberType::f16, bits), expected);
  EXPECT_TRUE(std::isinf(floats<std::uint16_t>(NumberType::f16, {0x7C00})[0]));
  EXPECT_TRUE(std::isnan(floats<std::uint16_t>(NumberType::f16, {0x7E00})[0]));
}

TEST(Number, ConvertsBrainFloat) {
  EXPECT_EQ(floats<std::uint16_t>(NumberType::bf16, {0x3F80, 0xC000, 0x4049}), (std::vector<float>{1, -2, 3.140625F}));
}

TEST(Number, WritesWithAStride) {
  const std::array<float, 3> values{1, 2, 3};
  std::vector<float> out(6, 0);

  data::arrays::convert(NumberType::f32, std::as_bytes(std::span(values)), out.data(), 2);

  EXPECT_EQ(out, (std::vector<float>{1, 0, 2, 0, 3, 0}));
}

}  // namespace
}  // namespace orthant
