#include "orthant/data/generate/power_spectrum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

/// sigma_8 by another rule: midpoints in k itself, range by range.
double sigma_8_of(const PowerSpectrum& spectrum) {
  double sum = 0;
  for (double lo = 1e-6; lo < 100; lo *= 1.5) {
    const double hi = 1.5 * lo;
    constexpr int steps = 2000;
    for (int i = 0; i < steps; ++i) {
      const double width = (hi - lo) / steps, k = lo + (i + 0.5) * width, x = 8 * k;
      const double window = x < 1e-2 ? 1 - x * x / 10 : 3 * (std::sin(x) / x - std::cos(x)) / (x * x);
      sum += k * k * spectrum(k) * window * window * width;
    }
  }
  return std::sqrt(sum / (2 * std::numbers::pi * std::numbers::pi));
}

TEST(PowerSpectrum, HasTheSigma8ItWasMadeWith) {
  for (const TransferKind kind : {TransferKind::eisenstein_hu, TransferKind::no_wiggle, TransferKind::bbks}) {
    for (const double n_s : {0.68, 0.9667, 1.25}) {
      const PowerSpectrum spectrum({.sigma_8 = 0.7, .n_s = n_s}, kind);
      EXPECT_NEAR(sigma_8_of(spectrum), 0.7, 1e-4);
      EXPECT_NEAR(spectrum.sigma(8), 0.7, 1e-9);
    }
  }
}

TEST(PowerSpectrum, GoesWithTheSquareOfSigma8) {
  const PowerSpectrum one({.sigma_8 = 0.6}, TransferKind::eisenstein_hu),
      two({.sigma_8 = 1.2}, TransferKind::eisenstein_hu);

  for (const double k : {0.001, 0.1, 3.0}) EXPECT_NEAR(two(k) / one(k), 4, 1e-9);
}

TEST(PowerSpectrum, TiltsWithSpectralIndex) {
  const PowerSpectrum one({.n_s = 0.8}, TransferKind::eisenstein_hu), two({.n_s = 1.1}, TransferKind::eisenstein_hu);

  EXPECT_NEAR(two(1) / one(1) / (two(0.01) / one(0.01)), std::pow(100, 0.3), 1e-6);
}

// The peak of the matter power spectrum of our universe: about 0.016 h/Mpc and 2.5e4 (Mpc/h)^3.
TEST(PowerSpectrum, PeaksWhereOurUniverseDoes) {
  const PowerSpectrum spectrum({}, TransferKind::eisenstein_hu);
  double peak = 0;
  for (double k = 1e-3; k < 1; k *= 1.01) peak = spectrum(k) > spectrum(peak) ? k : peak;

  EXPECT_NEAR(peak, 0.0165, 0.002);
  EXPECT_NEAR(spectrum(peak), 2.45e4, 0.15e4);
  EXPECT_EQ(spectrum(0), 0);
}

TEST(PowerSpectrum, FallsWithRadius) {
  const PowerSpectrum spectrum({}, TransferKind::eisenstein_hu);

  EXPECT_GT(spectrum.sigma(1), spectrum.sigma(8));
  EXPECT_GT(spectrum.sigma(8), spectrum.sigma(50));
}

}  // namespace
}  // namespace orthant::data::generate
