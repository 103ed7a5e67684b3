#include "orthant/data/generate/value_noise.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::data::generate {
namespace {

TEST(ValueNoise, IsSmoothAndBounded) {
  for (int i = 0; i < 5000; ++i) {
    const double x = i * 2e-4;
    const double here = value_noise(1, 8, {0.3, x, 0.7}), next = value_noise(1, 8, {0.3, x + 1e-5, 0.7});
    EXPECT_LE(std::abs(here), 1);
    EXPECT_NEAR(here, next, 8 * 1e-5 * 3.1);  // the steepest a smooth step between -1 and 1 can be
  }
}

TEST(ValueNoise, IsAFunctionOfKeyAndPlace) {
  const Point at{0.11, 0.52, 0.93};

  EXPECT_EQ(value_noise(1, 8, at), value_noise(1, 8, at));
  EXPECT_NE(value_noise(1, 8, at), value_noise(2, 8, at));
  EXPECT_NE(value_noise(1, 8, at), value_noise(1, 8, {0.31, 0.52, 0.93}));
}

TEST(ValueNoise, HasNoMean) {
  double sum = 0;
  for (int d = 0; d < 20; ++d)
    for (int h = 0; h < 20; ++h)
      for (int w = 0; w < 20; ++w) sum += value_noise(5, 20, {d / 20.0, h / 20.0, w / 20.0});

  EXPECT_NEAR(sum / 8000, 0, 4 * 0.58 / std::sqrt(8000));
}

}  // namespace
}  // namespace orthant::data::generate
