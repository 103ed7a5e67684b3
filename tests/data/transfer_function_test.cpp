#include "orthant/data/generate/transfer_function.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

const Cosmology planck{};

TEST(TransferFunction, IsOneForTheLongestWaves) {
  for (const TransferKind kind : {TransferKind::eisenstein_hu, TransferKind::no_wiggle, TransferKind::bbks}) {
    const TransferFunction transfer(planck, kind);
    EXPECT_EQ(transfer(0), 1);
    EXPECT_NEAR(transfer(1e-6), 1, 1e-3);
    EXPECT_GT(transfer(1e-5), transfer(1e-2));
  }
}

TEST(TransferFunction, FallsAsLogarithmOverSquare) {
  for (const TransferKind kind : {TransferKind::eisenstein_hu, TransferKind::no_wiggle, TransferKind::bbks}) {
    const TransferFunction transfer(planck, kind);
    const double ratio = transfer(1000) / transfer(100);
    EXPECT_GT(ratio, 0.010);
    EXPECT_LT(ratio, 0.0145);
  }
}

// Numbers of the paper: for Omega_m h^2 = 0.25 * 0.5 its fit of the sound horizon (equation 26) is good to 2 %.
TEST(TransferFunction, SoundHorizonAgreesWithThePapersFit) {
  for (const double omega_m : {0.22, 0.3089, 0.40}) {
    const Cosmology cosmology{.omega_m = omega_m};
    const double om = omega_m * cosmology.h * cosmology.h, ob = cosmology.omega_b * cosmology.h * cosmology.h;
    const double fit = 44.5 * std::log(9.83 / om) / std::sqrt(1 + 10 * std::pow(ob, 0.75)) * cosmology.h;
    EXPECT_NEAR(TransferFunction(cosmology, TransferKind::eisenstein_hu).sound_horizon() / fit, 1, 0.02);
  }
}

TEST(TransferFunction, WigglesSurroundTheSmoothShape) {
  const TransferFunction full(planck, TransferKind::eisenstein_hu), smooth(planck, TransferKind::no_wiggle);
  double largest = 0;
  for (double k = 0.02; k < 0.4; k += 0.002) largest = std::max(largest, std::abs(full(k) / smooth(k) - 1));

  EXPECT_GT(largest, 0.02);
  EXPECT_LT(largest, 0.06);
}

// Peaks of T / T_smooth lie 2 pi / s apart, s the sound horizon.
TEST(TransferFunction, WigglesHaveThePeriodOfTheSoundHorizon) {
  const TransferFunction full(planck, TransferKind::eisenstein_hu), smooth(planck, TransferKind::no_wiggle);
  std::vector<double> peaks;
  const auto ratio = [&](double k) { return full(k) / smooth(k); };
  constexpr double step = 2e-4;
  for (double k = 0.05; k < 0.3; k += step) {
    if (ratio(k) > ratio(k - step) && ratio(k) > ratio(k + step)) peaks.push_back(k);
  }

  ASSERT_GE(peaks.size(), 4U);
  const double period = (peaks.back() - peaks.front()) / static_cast<double>(peaks.size() - 1);
  EXPECT_NEAR(period * full.sound_horizon() / (2 * std::numbers::pi), 1, 0.05);
}

TEST(TransferFunction, WithoutBaryonsAllShapesAgree) {
  const Cosmology dark{.omega_b = 1e-6};
  const TransferFunction full(dark, TransferKind::eisenstein_hu), smooth(dark, TransferKind::no_wiggle);
  const TransferFunction bbks(dark, TransferKind::bbks);

  for (double k = 1e-3; k < 10; k *= 2) {
    EXPECT_NEAR(full(k) / smooth(k), 1, 0.03) << k;
    EXPECT_NEAR(bbks(k) / smooth(k), 1, 0.10) << k;
  }
}

TEST(TransferFunction, MoreMatterBendsAtShorterWaves) {
  for (const TransferKind kind : {TransferKind::eisenstein_hu, TransferKind::no_wiggle, TransferKind::bbks}) {
    EXPECT_GT(TransferFunction({.omega_m = 0.4}, kind)(0.2), TransferFunction({.omega_m = 0.25}, kind)(0.2));
    EXPECT_GT(TransferFunction({.h = 0.8}, kind)(0.2), TransferFunction({.h = 0.6}, kind)(0.2));
  }
}

}  // namespace
}  // namespace orthant::data::generate
