#include "orthant/oracle/prices.hpp"

#include <gtest/gtest.h>

namespace orthant::oracle {
namespace {

model::ConvTask conv(std::int64_t channels, std::int64_t cells, model::Algorithm algorithm) {
  const tensor::Layout layout = tensor::channels_last({.n = 1, .c = channels, .d = cells, .h = cells, .w = cells});
  return {.window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)},
          .src = layout,
          .dst = layout,
          .algorithm = algorithm};
}

void measure(Setting& setting, const model::Task& task, double seconds, std::int64_t scratch_bytes = 0) {
  setting.tasks[task_key(task)] = {
      .features = features_of(task), .seconds = seconds, .error = 0.01, .scratch_bytes = scratch_bytes};
}

Profile profile_with(const Setting& setting) {
  return {.name = "test", .memory_bytes = 1 << 30, .settings = {setting}};
}

Setting machine() { return {.threads = 1, .flops_per_second = 100e9, .memory_bytes_per_second = 10e9}; }

using model::Algorithm;

TEST(Prices, WhatWasMeasuredIsThePrice) {
  Setting setting = machine();
  measure(setting, conv(16, 32, Algorithm::winograd), 0.0125, 4096);
  const Profile profile = profile_with(setting);
  const Prices prices(profile, 1, 1);

  const Price price = prices.of(conv(16, 32, Algorithm::winograd));

  EXPECT_DOUBLE_EQ(price.seconds, 0.0125);
  EXPECT_EQ(price.knowledge, Knowledge::measured);
  EXPECT_EQ(prices.scratch_bytes(conv(16, 32, Algorithm::winograd)), 4096);
}

TEST(Prices, NeighboursOfAFamilyPriceWhatIsBetweenThem) {
  Setting setting = machine();
  const auto half_peak = [](const model::Task& task) { return static_cast<double>(model::flops(task)) / 50e9; };
  for (const std::int64_t cells : {16, 64})
    measure(setting, conv(32, cells, Algorithm::direct), half_peak(conv(32, cells, Algorithm::direct)));
  const Profile profile = profile_with(setting);
  const Prices prices(profile, 1, 1);

  const Price price = prices.of(conv(32, 32, Algorithm::direct));

  EXPECT_EQ(price.knowledge, Knowledge::interpolated);
  EXPECT_NEAR(price.seconds, half_peak(conv(32, 32, Algorithm::direct)), 1e-9);
}

TEST(Prices, TheErrorGrowsWithTheDistance) {
  Setting setting = machine();
  measure(setting, conv(32, 16, Algorithm::direct), 0.001);
  const Profile profile = profile_with(setting);
  const Prices prices(profile, 1, 1);

  const double near = prices.of(conv(32, 20, Algorithm::direct)).error;
  const double far = prices.of(conv(4, 128, Algorithm::direct)).error;

  EXPECT_GT(near, 0.01);
  EXPECT_GT(far, 2 * near);
}

TEST(Prices, WithoutMeasurementsACurveDecides) {
  Profile profile = profile_with(machine());
  profile.curves = {{.family = "conv", .peak_share = 0.1, .half_intensity = 0, .error = 0.3},
                    {.family = "conv 3d", .peak_share = 0.5, .half_intensity = 0, .error = 0.2}};
  const Prices prices(profile, 1, 1);
  const model::Task task = conv(64, 16, Algorithm::automatic);

  const Price price = prices.of(task);

  EXPECT_EQ(price.knowledge, Knowledge::curve);
  EXPECT_DOUBLE_EQ(price.error, 0.2);
  EXPECT_NEAR(price.seconds, static_cast<double>(model::flops(task)) / 50e9, 1e-12);
}

TEST(Prices, TheFastestAlgorithmIsChosenAmongThoseThatCanRun) {
  Setting setting = machine();
  measure(setting, conv(16, 32, Algorithm::winograd), 0.010);
  measure(setting, conv(16, 32, Algorithm::direct), 0.020);
  measure(setting, conv(16, 64, Algorithm::onednn), 0.001);
  const Profile profile = profile_with(setting);
  const Prices prices(profile, 1, 1);

  EXPECT_EQ(prices.fastest(conv(16, 32, Algorithm::automatic)).algorithm, Algorithm::winograd);
  model::ConvTask strided = conv(16, 48, Algorithm::automatic);
  strided.src.strides.n *= 2;
  strided.src.strides.d *= 2;
  EXPECT_NE(prices.fastest(strided).algorithm, Algorithm::onednn);
}

TEST(Prices, AnotherNumberOfThreadsScalesWhatWasMeasured) {
  Setting setting = machine();
  measure(setting, conv(16, 32, Algorithm::direct), 0.010);
  const Profile profile = profile_with(setting);

  const Price price = Prices(profile, 4, 1).of(conv(16, 32, Algorithm::direct));

  EXPECT_NEAR(price.seconds, 0.0025, 1e-9);
  EXPECT_GT(price.error, 0.1);
}

TEST(Fingerprint, TellsTasksWithDifferentKeysApart) {
  const model::Task task = conv(16, 32, Algorithm::direct);

  model::ConvTask other = conv(16, 32, Algorithm::direct);
  other.src.offset = 64;
  EXPECT_EQ(fingerprint(task), fingerprint(other));
  other.accumulate = true;
  EXPECT_NE(fingerprint(task), fingerprint(other));
  EXPECT_NE(fingerprint(task), fingerprint(conv(16, 32, Algorithm::winograd)));
  EXPECT_NE(fingerprint(task), fingerprint(conv(16, 33, Algorithm::direct)));
  EXPECT_NE(fingerprint(task), fingerprint(model::FillTask{.dst = other.src}));
}

}  // namespace
}  // namespace orthant::oracle
