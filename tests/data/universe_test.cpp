#include "orthant/data/generate/universe.hpp"

#include "orthant/comm/alone.hpp"
#include "orthant/data/generate/modes.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <set>
#include <string>
#include <utility>

namespace orthant::data::generate {
namespace {

const UniverseSettings large{.size = 48, .box = 480, .redshifts = {3, 0}, .type = arrays::NumberType::f32, .seed = 4};
const UniverseParameters planck = parameters_of({0.3089, 0.8159, 0.9667, 67.74});

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

/// What cloud-in-cell leaves of a wave's amplitude.
double cloud_window(const Waves& waves, std::int64_t size) {
  double window = 1;
  for (const std::int64_t count : waves) {
    const double x = std::numbers::pi * static_cast<double>(count) / static_cast<double>(size);
    window *= count == 0 ? 1 : std::sin(x) * std::sin(x) / (x * x);
  }
  return window;
}

struct Band {
  double lo = 0, hi = 0;  ///< waves per box
};

/// The power of the modes of a band, each weighed by `weight(k)`: their sum in one channel.
template <class Weight>
double power(const UniverseSettings& settings, const UniverseParameters& parameters, std::int64_t universe,
             std::size_t channel, const Band& band, Weight weight) {
  comm::Alone alone;
  const std::vector<float> volume = floats_of(make_universe(alone, settings, parameters, universe, {}));
  const std::size_t channels = settings.redshifts.size();
  std::vector<float> density;
  for (std::size_t i = channel; i < volume.size(); i += channels) density.push_back(volume[i] - 1);
  SlabFft fft(alone, settings.size, 1);
  std::vector<Complex> modes(static_cast<std::size_t>(fft.slabs().modes(0)));
  fft.forward(density, modes);
  double sum = 0;
  int count = 0;
  for_each_mode(fft.slabs(), 0, 1, [&](const Waves& waves, std::int64_t index) {
    const double length = std::sqrt(static_cast<double>(square_of(waves)));
    if (waves[2] == 0 || length < band.lo || length >= band.hi) return;
    const double amplitude =
        std::abs(std::complex<double>(modes[static_cast<std::size_t>(index)])) / cloud_window(waves, settings.size);
    sum += amplitude * amplitude * std::pow(settings.box, 3) * weight(2 * std::numbers::pi * length / settings.box);
    ++count;
  });
  return sum / count;
}

double power(const UniverseSettings& settings, const UniverseParameters& parameters, std::size_t channel,
             const Band& band) {
  return power(settings, parameters, 0, channel, band, [](double) { return 1.0; });
}

/// The mean over universes and modes of measured over linear power.
double ratio_to_theory(const UniverseSettings& settings, std::size_t channel, const Band& band, int universes) {
  const Cosmology cosmology = planck.cosmology();
  const PowerSpectrum spectrum(cosmology, settings.transfer);
  const double growth = first_growth(cosmology, settings.redshifts[channel]);
  double sum = 0;
  for (int universe = 0; universe < universes; ++universe) {
    sum +=
        power(settings, planck, universe, channel, band, [&](double k) { return 1 / (growth * growth * spectrum(k)); });
  }
  ::testing::Test::RecordProperty("ratio_from_" + std::to_string(static_cast<int>(band.lo)),
                                  std::to_string(sum / universes));
  return sum / universes;
}

// At z = 3 waves of 480 to 60 Mpc/h: 8 universes have 8,000 such modes, a standard error of 1.1 % for their mean.
TEST(Universe, HasThePowerOfLinearTheoryOnLargeScales) {
  EXPECT_NEAR(ratio_to_theory(large, 0, {1, 8}, 8), 1, 0.05);
  EXPECT_NEAR(ratio_to_theory(large, 0, {8, 14}, 4), 1, 0.05);
}

// Today waves below 100 Mpc/h are no longer linear; 24 universes have 4,700 of those above.
TEST(Universe, HasThePowerOfLinearTheoryToday) {
  UniverseSettings settings = large;
  settings.size = 32;

  EXPECT_NEAR(ratio_to_theory(settings, 1, {1, 4.8}, 24), 1, 0.05);
}

TEST(Universe, PowerGoesWithTheSquareOfSigma8) {
  const double low = power(large, parameters_of({0.3, 0.7, 0.96, 68}), 0, {1, 8});
  const double high = power(large, parameters_of({0.3, 0.9, 0.96, 68}), 0, {1, 8});

  EXPECT_NEAR(high / low / std::pow(0.9 / 0.7, 2), 1, 0.02);
}

TEST(Universe, SpectralIndexTiltsThePower) {
  const UniverseParameters red = parameters_of({0.3, 0.8, 0.8, 68}), blue = parameters_of({0.3, 0.8, 1.1, 68});
  const double long_waves = power(large, blue, 0, {2, 3}) / power(large, red, 0, {2, 3});
  const double short_waves = power(large, blue, 0, {8, 10}) / power(large, red, 0, {8, 10});

  EXPECT_NEAR(std::log(short_waves / long_waves) / std::log(9.0 / 2.5), 0.3, 0.05);
}

TEST(Universe, MatterChangesShapeAndGrowthAsInTheory) {
  const UniverseParameters light = parameters_of({0.22, 0.8, 0.96, 68}), heavy = parameters_of({0.40, 0.8, 0.96, 68});
  const PowerSpectrum light_theory(light.cosmology(), large.transfer), heavy_theory(heavy.cosmology(), large.transfer);
  const double growth = first_growth(heavy.cosmology(), 3) / first_growth(light.cosmology(), 3);

  for (const Band& band : {Band{1.5, 3}, Band{4, 5}, Band{9, 10}}) {
    const double k = std::numbers::pi * (band.lo + band.hi) / large.box;
    const double expected = heavy_theory(k) / light_theory(k) * growth * growth;
    EXPECT_NEAR(power(large, heavy, 0, band) / power(large, light, 0, band) / expected, 1, 0.06) << band.lo;
  }
}

TEST(Universe, BecomesClumpierWithTime) {
  comm::Alone alone;
  UniverseSettings settings = large;
  settings.redshifts = {10, 3, 1, 0};
  const std::vector<float> volume = floats_of(make_universe(alone, settings, planck, 0, {}));
  std::array<double, 4> squares{};
  for (std::size_t i = 0; i < volume.size(); ++i)
    squares[i % 4] += (static_cast<double>(volume[i]) - 1) * (static_cast<double>(volume[i]) - 1);

  EXPECT_LT(squares[0], squares[1]);
  EXPECT_LT(squares[1], squares[2]);
  EXPECT_LT(squares[2], squares[3]);
}

TEST(Universe, CountsAreSixtyFourPerParticle) {
  comm::Alone alone;
  UniverseSettings settings{.size = 12, .box = 24, .type = arrays::NumberType::f32};
  const std::vector<float> densities = floats_of(make_universe(alone, settings, planck, 0, {}));
  settings.type = arrays::NumberType::i16;
  const std::vector<std::byte> bytes = make_universe(alone, settings, planck, 0, {});
  std::vector<std::int16_t> counts(densities.size());
  std::memcpy(counts.data(), bytes.data(), bytes.size());

  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(counts[i], std::floor(densities[i] * counts_per_particle + 0.5F));
}

TEST(Universe, IsAFunctionOfSeedAndNumberAlone) {
  comm::Alone alone;
  const UniverseSettings settings{.size = 10, .box = 20, .seed = 1};
  UniverseSettings other = settings;
  other.seed = 2;
  int steps = 0;
  const auto whole = make_universe(alone, settings, planck, 3, {.after_step = [&] { ++steps; }});

  EXPECT_EQ(steps, steps_of_universe(settings));
  EXPECT_NE(whole, make_universe(alone, settings, planck, 4, {}));
  EXPECT_NE(whole, make_universe(alone, other, planck, 3, {}));
  for (const int ranks : {2, 3}) {
    test::run_threads(ranks, [&](comm::Comm& comm) {
      const auto part = make_universe(comm, settings, planck, 3, {.threads = 2});
      const std::int64_t first = Slabs{.size = 10, .ranks = ranks}.planes(comm.rank()).lo * 100 * 4 * 2;
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first));
    });
  }
}

// Each of the first 2^n points of a set has a range of its own in every parameter, and pairs fill the plane.
TEST(UniverseParameters, FillTheirRangesEvenly) {
  std::array<std::set<int>, 4> ranges;
  std::set<std::pair<int, int>> squares;
  for (std::int64_t universe = 0; universe < 32; ++universe) {
    const UniverseParameters parameters = draw_parameters(5, universe);
    const UniverseParameters again = parameters_of(parameters.physical);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(parameters.unit[i], 0, 1);
      EXPECT_NEAR(again.unit[i], parameters.unit[i], 1e-12);
      EXPECT_NEAR(parameters.physical[i] / parameter_means[i], 1, 0.3);
      ranges[i].insert(static_cast<int>((parameters.unit[i] + 1) * 16));
    }
    squares.emplace(static_cast<int>((parameters.unit[0] + 1) * 2), static_cast<int>((parameters.unit[1] + 1) * 4));
  }

  for (const std::set<int>& hit : ranges) EXPECT_EQ(hit.size(), 32U);
  EXPECT_EQ(squares.size(), 32U);
  EXPECT_NE(draw_parameters(5, 0).unit, draw_parameters(6, 0).unit);
}

TEST(Universe, MemoryOfALargeOneIsWithinTwentyGigabytes) {
  const UniverseSettings settings{.size = 512, .box = 512};

  EXPECT_LT(universe_bytes(settings, 1, 2), std::int64_t{8} << 30U);
  EXPECT_LT(4 * universe_bytes(settings, 4, 1), std::int64_t{12} << 30U);
}

}  // namespace
}  // namespace orthant::data::generate
