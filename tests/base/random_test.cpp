#include "orthant/base/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace orthant::base {
namespace {

constexpr int draws = 20000;

TEST(Random, UniformHasTheRightMoments) {
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = uniform(7, static_cast<std::uint64_t>(i));
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / draws, 0.5, 0.01);
  EXPECT_NEAR(squares / draws, 1.0 / 3, 0.01);
}

TEST(Random, NormalHasTheRightMoments) {
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = normal(11, static_cast<std::uint64_t>(i));
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / draws, 0, 0.03);
  EXPECT_NEAR(squares / draws, 1, 0.05);
}

TEST(Random, KeysAndIndicesGiveDifferentNumbers) {
  std::set<double> seen;
  for (std::uint64_t key = 0; key < 50; ++key) {
    for (std::uint64_t index = 0; index < 50; ++index) seen.insert(uniform(keyed(3, key), index));
  }
  EXPECT_EQ(seen.size(), 2500U);
}

TEST(Random, OrderOfKeysMatters) { EXPECT_NE(keyed(keyed(1, 2), 3), keyed(keyed(1, 3), 2)); }

}  // namespace
}  // namespace orthant::base
