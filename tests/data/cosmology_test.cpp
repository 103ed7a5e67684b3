#include "orthant/data/generate/cosmology.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::data::generate {
namespace {

/// D'' + (3/a + dlnH/da) D' = 3/2 Omega_m / (a^5 (H/H0)^2) D, by Runge and Kutta from deep in the matter era.
double growth_by_equation(double omega_m, double to) {
  const auto h2 = [&](double a) { return omega_m / (a * a * a) + 1 - omega_m; };
  const auto acceleration = [&](double a, double d, double v) {
    const double slope = -1.5 * omega_m / (a * a * a * a) / h2(a);
    return -(3 / a + slope) * v + 1.5 * omega_m / (std::pow(a, 5) * h2(a)) * d;
  };
  double a = 1e-3, d = a, v = 1;
  constexpr int steps = 20000;
  const double step = (to - a) / steps;
  for (int i = 0; i < steps; ++i, a += step) {
    const double d1 = v, v1 = acceleration(a, d, v);
    const double d2 = v + step / 2 * v1, v2 = acceleration(a + step / 2, d + step / 2 * d1, d2);
    const double d3 = v + step / 2 * v2, v3 = acceleration(a + step / 2, d + step / 2 * d2, d3);
    const double d4 = v + step * v3, v4 = acceleration(a + step, d + step * d3, d4);
    d += step / 6 * (d1 + 2 * d2 + 2 * d3 + d4);
    v += step / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
  }
  return d;
}

TEST(Cosmology, GrowsAsTheScaleFactorWithoutLambda) {
  const Cosmology flat{.omega_m = 1};

  for (const double z : {0.0, 0.5, 3.0, 20.0}) {
    EXPECT_NEAR(first_growth(flat, z) * (1 + z), 1, 1e-8);
    EXPECT_NEAR(second_growth(flat, z) * (1 + z) * (1 + z), -3.0 / 7, 1e-8);
    EXPECT_DOUBLE_EQ(omega_m_at(flat, z), 1);
  }
}

TEST(Cosmology, GrowthSolvesItsEquation) {
  for (const double omega_m : {0.2, 0.3089, 0.45}) {
    const double today = growth_by_equation(omega_m, 1);
    for (const double z : {0.5, 1.5, 3.0})
      EXPECT_NEAR(first_growth({.omega_m = omega_m}, z), growth_by_equation(omega_m, 1 / (1 + z)) / today, 2e-4);
  }
}

TEST(Cosmology, MatterRulesEarly) {
  const Cosmology cosmology;

  EXPECT_DOUBLE_EQ(omega_m_at(cosmology, 0), cosmology.omega_m);
  EXPECT_GT(omega_m_at(cosmology, 3), 0.96);
  EXPECT_NEAR(second_growth(cosmology, 0), -3.0 / 7 * std::pow(cosmology.omega_m, -1.0 / 143), 1e-12);
}

}  // namespace
}  // namespace orthant::data::generate
