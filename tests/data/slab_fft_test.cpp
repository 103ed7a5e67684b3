#include "orthant/data/generate/slab_fft.hpp"

#include "orthant/base/random.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/data/generate/modes.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

#include <numbers>

namespace orthant::data::generate {
namespace {

float value_at(std::int64_t cell) {
  return static_cast<float>(base::uniform(7, static_cast<std::uint64_t>(cell)) - 0.5);
}

/// One rank's part of a random cube.
std::vector<float> part_of_cube(const Slabs& slabs, int rank) {
  std::vector<float> field;
  const std::int64_t area = slabs.size * slabs.size;
  for (std::int64_t cell = slabs.planes(rank).lo * area; cell < slabs.planes(rank).hi * area; ++cell)
    field.push_back(value_at(cell));
  return field;
}

std::complex<double> mode_by_definition(std::int64_t size, const Waves& waves) {
  std::complex<double> sum = 0;
  std::int64_t cell = 0;
  for (std::int64_t d = 0; d < size; ++d)
    for (std::int64_t h = 0; h < size; ++h)
      for (std::int64_t w = 0; w < size; ++w, ++cell) {
        const auto angle = static_cast<double>(waves[0] * d + waves[1] * h + waves[2] * w) / static_cast<double>(size);
        sum += static_cast<double>(value_at(cell)) * std::polar(1.0, -2 * std::numbers::pi * angle);
      }
  return sum / static_cast<double>(size * size * size);
}

struct Modes {
  std::vector<Complex> modes;
  std::vector<float> back;
};

Modes transform(comm::Comm& comm, std::int64_t size, int threads) {
  SlabFft fft(comm, size, threads);
  Modes result{std::vector<Complex>(static_cast<std::size_t>(fft.slabs().modes(comm.rank()))), {}};
  fft.forward(part_of_cube(fft.slabs(), comm.rank()), result.modes);
  std::vector<Complex> used = result.modes;
  result.back.resize(static_cast<std::size_t>(fft.slabs().cells(comm.rank())));
  fft.backward(used, result.back);
  return result;
}

TEST(SlabFft, GivesTheSumsOfTheDefinition) {
  for (const std::int64_t size : {8, 9}) {
    comm::Alone alone;
    const Modes result = transform(alone, size, 1);

    for_each_mode({.size = size, .ranks = 1}, 0, 1, [&](const Waves& waves, std::int64_t index) {
      const std::complex<double> expected = mode_by_definition(size, waves);
      EXPECT_NEAR(std::abs(std::complex<double>(result.modes[static_cast<std::size_t>(index)]) - expected), 0, 1e-7);
    });
  }
}

TEST(SlabFft, BackwardUndoesForward) {
  for (const std::int64_t size : {8, 11, 24, 30}) {
    test::run_threads(3, [&](comm::Comm& comm) {
      const Modes result = transform(comm, size, 2);
      const std::vector<float> before = part_of_cube({.size = size, .ranks = 3}, comm.rank());

      for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(result.back[i], before[i], 2e-6);
    });
  }
}

TEST(SlabFft, HasTheSameBitsOnAnyNumberOfRanksAndThreads) {
  for (const std::int64_t size : {10, 15, 16}) {
    comm::Alone alone;
    const Modes whole = transform(alone, size, 1);
    for (const int ranks : {1, 2, 3, 5}) {
      test::run_threads(ranks, [&](comm::Comm& comm) {
        const Modes part = transform(comm, size, 1 + ranks % 3);
        const Slabs slabs{.size = size, .ranks = ranks};
        const auto row = slabs.planes(comm.rank()).lo;
        EXPECT_TRUE(std::equal(part.modes.begin(), part.modes.end(), whole.modes.begin() + row * size * slabs.half()));
        EXPECT_TRUE(std::equal(part.back.begin(), part.back.end(), whole.back.begin() + row * size * size));
      });
    }
  }
}

TEST(SlabFft, RanksWithoutPlanesTakePart) {
  test::run_threads(5, [&](comm::Comm& comm) { EXPECT_NO_THROW(transform(comm, 4, 1)); });
}

}  // namespace
}  // namespace orthant::data::generate
