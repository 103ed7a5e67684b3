#include "orthant/data/generate/displacement.hpp"

#include "orthant/comm/alone.hpp"
#include "orthant/data/generate/modes.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

constexpr std::int64_t size = 24;
constexpr double wave = 2 * std::numbers::pi / size;

/// The displacements of a density given cell by cell.
template <class Density>
Displacements displacements_of(comm::Comm& comm, Density density) {
  SlabFft fft(comm, size, 1);
  std::vector<float> field;
  for (std::int64_t d = fft.planes().lo; d < fft.planes().hi; ++d)
    for (std::int64_t h = 0; h < size; ++h)
      for (std::int64_t w = 0; w < size; ++w)
        field.push_back(
            static_cast<float>(density(static_cast<double>(d), static_cast<double>(h), static_cast<double>(w))));
  std::vector<Complex> modes(static_cast<std::size_t>(fft.slabs().modes(comm.rank())));
  fft.forward(field, modes);
  int transforms = 0;
  Displacements displacements = displace(comm, fft, modes, {.after_transform = [&] { ++transforms; }});
  EXPECT_EQ(transforms, transforms_of_displacements);
  return displacements;
}

/// Calls visit(cell, d, h, w).
template <class Visit>
void for_each_cell(Visit visit) {
  std::size_t cell = 0;
  for (std::int64_t d = 0; d < size; ++d)
    for (std::int64_t h = 0; h < size; ++h)
      for (std::int64_t w = 0; w < size; ++w, ++cell)
        visit(cell, static_cast<double>(d), static_cast<double>(h), static_cast<double>(w));
}

// delta = cos(k x) moves particles by -sin(k x) / k along x (Zel'dovich), exactly: there is no second order.
TEST(Displacement, PlaneWaveIsZeldovichs) {
  for (std::size_t dim = 0; dim < 3; ++dim) {
    comm::Alone alone;
    const auto along = [&](double d, double h, double w) { return 2 * wave * std::array{d, h, w}[dim]; };
    const Displacements moved =
        displacements_of(alone, [&](double d, double h, double w) { return std::cos(along(d, h, w)); });

    for_each_cell([&](std::size_t cell, double d, double h, double w) {
      for (std::size_t i = 0; i < 3; ++i) {
        const double expected = i == dim ? -std::sin(along(d, h, w)) / (2 * wave) : 0;
        EXPECT_NEAR(moved.first[i][cell], expected, 1e-5);
        EXPECT_NEAR(moved.second[i][cell], 0, 1e-5);
      }
    });
  }
}

// delta = cos(k x) + cos(k y): the second-order density is cos(k x) cos(k y), whose potential is that over -2 k^2.
TEST(Displacement, CrossedWavesHaveTheSecondOrderOfTheFormula) {
  comm::Alone alone;
  const Displacements moved =
      displacements_of(alone, [](double d, double /*h*/, double w) { return std::cos(wave * d) + std::cos(wave * w); });

  for_each_cell([&](std::size_t cell, double d, double /*h*/, double w) {
    EXPECT_NEAR(moved.second[0][cell], -std::sin(wave * d) * std::cos(wave * w) / (2 * wave), 1e-5);
    EXPECT_NEAR(moved.second[1][cell], 0, 1e-5);
    EXPECT_NEAR(moved.second[2][cell], -std::cos(wave * d) * std::sin(wave * w) / (2 * wave), 1e-5);
  });
}

TEST(Displacement, ObliqueWaveHasNoSecondOrder) {
  comm::Alone alone;
  const Displacements moved =
      displacements_of(alone, [](double d, double h, double w) { return std::cos(wave * (d + 2 * h - w) + 0.3); });

  for (const std::vector<float>& component : moved.second)
    for (const float distance : component) EXPECT_NEAR(distance, 0, 1e-5);
}

TEST(Displacement, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto density = [](double d, double h, double w) { return std::sin(wave * d * h) * std::cos(wave * (w + d)); };
  comm::Alone alone;
  const Displacements whole = displacements_of(alone, density);

  for (const int ranks : {2, 3}) {
    test::run_threads(ranks, [&](comm::Comm& comm) {
      const Displacements part = displacements_of(comm, density);
      const std::int64_t first = Slabs{.size = size, .ranks = ranks}.planes(comm.rank()).lo * size * size;
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(std::equal(part.first[i].begin(), part.first[i].end(), whole.first[i].begin() + first));
        EXPECT_TRUE(std::equal(part.second[i].begin(), part.second[i].end(), whole.second[i].begin() + first));
      }
    });
  }
}

}  // namespace
}  // namespace orthant::data::generate
