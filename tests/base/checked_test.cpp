#include "orthant/base/checked.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace orthant::base {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(Checked, AddsAndMultipliesWhatFits) {
  EXPECT_EQ(checked_add(2, 3), 5);
  EXPECT_EQ(checked_add(largest - 1, 1), largest);
  EXPECT_EQ(checked_mul(1 << 20, 1 << 20), std::int64_t{1} << 40);
  EXPECT_EQ(checked_mul(largest, 1), largest);
  EXPECT_EQ(checked_mul(0, largest), 0);
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product({2, 3, 5, 7}), 210);
}

TEST(Checked, RefusesOverflow) {
  EXPECT_THROW(checked_add(largest, 1), Error);
  EXPECT_THROW(checked_add(-largest, -2), Error);
  EXPECT_THROW(checked_mul(largest, 2), Error);
  EXPECT_THROW(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), Error);
  EXPECT_THROW(checked_product({std::int64_t{1} << 30, std::int64_t{1} << 30, 8}), Error);
}

TEST(Checked, OverflowIsBadDataInOneLine) {
  try {
    checked_mul(largest, 3);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_data);
    EXPECT_EQ(std::string(error.what()), "size 9223372036854775807 x 3 overflows 64 bits; use smaller sizes");
  }
}

}  // namespace
}  // namespace orthant::base
