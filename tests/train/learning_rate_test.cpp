#include "orthant/train/learning_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace orthant::train {
namespace {

using Kind = LearningRate::Kind;

TEST(LearningRate, IsConstantByDefault) {
  for (const std::int64_t step : {1, 50, 100}) EXPECT_EQ(rate_at({.base = 0.3}, step, 100), 0.3);
}

TEST(LearningRate, WarmsUpLinearly) {
  const LearningRate rate{.base = 0.5, .warmup_steps = 4};

  EXPECT_DOUBLE_EQ(rate_at(rate, 1, 100), 0.125);
  EXPECT_DOUBLE_EQ(rate_at(rate, 2, 100), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(rate, 4, 100), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(rate, 5, 100), 0.5);
}

TEST(LearningRate, StepsDown) {
  const LearningRate rate{.kind = Kind::step, .base = 1, .factor = 0.1, .every = 10, .warmup_steps = 2};

  EXPECT_DOUBLE_EQ(rate_at(rate, 3, 100), 1);
  EXPECT_DOUBLE_EQ(rate_at(rate, 12, 100), 1);
  EXPECT_DOUBLE_EQ(rate_at(rate, 13, 100), 0.1);
  EXPECT_DOUBLE_EQ(rate_at(rate, 23, 100), 0.01);
}

TEST(LearningRate, FollowsItsFormulaAfterTheWarmup) {
  constexpr std::int64_t steps = 110;
  for (std::int64_t step = 11; step <= steps; ++step) {
    const double t = static_cast<double>(step - 11) / 100;
    LearningRate rate{.base = 0.8, .end = 0.2, .power = 3, .warmup_steps = 10};
    rate.kind = Kind::linear;
    EXPECT_NEAR(rate_at(rate, step, steps), 0.8 - 0.6 * t, 1e-12);
    rate.kind = Kind::polynomial;
    EXPECT_NEAR(rate_at(rate, step, steps), 0.2 + 0.6 * (1 - t) * (1 - t) * (1 - t), 1e-12);
    rate.kind = Kind::cosine;
    EXPECT_NEAR(rate_at(rate, step, steps), 0.2 + 0.3 * (1 + std::cos(std::numbers::pi * t)), 1e-12);
  }
}

TEST(LearningRate, SurvivesAWarmupLongerThanTheRun) {
  const LearningRate rate{.kind = Kind::cosine, .base = 1, .warmup_steps = 50};

  EXPECT_DOUBLE_EQ(rate_at(rate, 10, 10), 0.2);
}

}  // namespace
}  // namespace orthant::train
