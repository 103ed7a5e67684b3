#include "orthant/data/generate/modes.hpp"

#include "orthant/comm/alone.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numbers>

namespace orthant::data::generate {
namespace {

std::vector<Complex> modes_of(std::int64_t size, const RandomField& field, const PowerSpectrum& spectrum) {
  comm::Alone alone;
  const SlabFft fft(alone, size, 1);
  std::vector<Complex> modes(static_cast<std::size_t>(fft.slabs().modes(0)));
  draw_modes(field, spectrum, fft, 0, 1, modes);
  return modes;
}

const PowerSpectrum planck({}, TransferKind::eisenstein_hu);

TEST(Modes, WavesCountUpToHalfTheSizeAndBack) {
  std::vector<std::int64_t> even, odd;
  for (std::int64_t i = 0; i < 6; ++i) even.push_back(waves_of(i, 6));
  for (std::int64_t i = 0; i < 5; ++i) odd.push_back(waves_of(i, 5));

  EXPECT_EQ(even, (std::vector<std::int64_t>{0, 1, 2, 3, -2, -1}));
  EXPECT_EQ(odd, (std::vector<std::int64_t>{0, 1, 2, -2, -1}));
}

TEST(Modes, OppositeWavesAreConjugates) {
  for (const Waves& waves : {Waves{1, 2, 3}, Waves{0, -4, 0}, Waves{5, 0, 0}, Waves{-3, 2, 0}}) {
    EXPECT_EQ(noise_of(9, waves), std::conj(noise_of(9, {-waves[0], -waves[1], -waves[2]})));
    EXPECT_NE(noise_of(9, waves), noise_of(10, waves));
  }
}

TEST(Modes, NoiseHasMeanSquareOneAndNoMean) {
  std::complex<double> sum = 0;
  double squares = 0;
  int count = 0;
  for (std::int64_t d = -15; d <= 15; ++d)
    for (std::int64_t h = -15; h <= 15; ++h)
      for (std::int64_t w = 1; w <= 15; ++w, ++count) {
        sum += noise_of(3, {d, h, w});
        squares += std::norm(noise_of(3, {d, h, w}));
      }

  EXPECT_NEAR(squares / count, 1, 4 / std::sqrt(count));
  EXPECT_NEAR(std::abs(sum) / count, 0, 4 / std::sqrt(count));
}

TEST(Modes, AreTheSameInAFinerGridOfTheSameBox) {
  const RandomField field{.key = 5, .box = 100};
  const std::vector<Complex> coarse = modes_of(12, field, planck), fine = modes_of(20, field, planck);
  std::map<Waves, Complex> in_fine;
  for_each_mode({.size = 20}, 0, 1,
                [&](const Waves& waves, std::int64_t i) { in_fine[waves] = fine[static_cast<std::size_t>(i)]; });

  for_each_mode({.size = 12}, 0, 1, [&](const Waves& waves, std::int64_t i) {
    if (is_ambiguous(waves, 12)) return;
    EXPECT_EQ(coarse[static_cast<std::size_t>(i)], in_fine[waves]);
  });
}

// 48^3 modes in shells of their length: each mean must agree with theory within 5 of its standard errors, and all
// together within 1.5 %.
TEST(Modes, HaveThePowerOfTheory) {
  constexpr std::int64_t size = 48;
  constexpr double box = 300;
  const std::vector<Complex> modes = modes_of(size, {.key = 11, .box = box}, planck);
  std::map<std::int64_t, std::pair<double, int>> shells;
  double all = 0;
  int count = 0;
  for_each_mode({.size = size}, 0, 1, [&](const Waves& waves, std::int64_t i) {
    if (waves[2] == 0 || is_ambiguous(waves, size)) return;
    const double k = 2 * std::numbers::pi / box * std::sqrt(static_cast<double>(square_of(waves)));
    const double ratio =
        std::norm(std::complex<double>(modes[static_cast<std::size_t>(i)])) * box * box * box / planck(k);
    auto& [sum, members] = shells[static_cast<std::int64_t>(std::sqrt(square_of(waves)) / 3)];
    sum += ratio;
    ++members;
    all += ratio;
    ++count;
  });

  EXPECT_NEAR(all / count, 1, 0.015);
  for (const auto& [shell, entry] : shells)
    EXPECT_NEAR(entry.first / entry.second, 1, 5 / std::sqrt(entry.second)) << shell;
}

}  // namespace
}  // namespace orthant::data::generate
