#pragma once

#include "orthant/data/generate/power_spectrum.hpp"
#include "orthant/data/generate/slab_fft.hpp"
#include "orthant/data/io/threads.hpp"

#include <array>

namespace orthant::data::generate {

/// A wave vector in whole waves per box: d, h, w.
using Waves = std::array<std::int64_t, 3>;

/// The waves of index i along a dim of `size` cells: 0, 1, ..., -2, -1.
constexpr std::int64_t waves_of(std::int64_t i, std::int64_t size) { return 2 * i > size ? i - size : i; }

/// True if a cube of `size` cells cannot tell this wave from its mirror image in some dim.
constexpr bool is_ambiguous(const Waves& waves, std::int64_t size) {
  return 2 * waves[0] == size || 2 * waves[1] == size || 2 * waves[2] == size;
}

constexpr std::int64_t square_of(const Waves& waves) {
  return waves[0] * waves[0] + waves[1] * waves[1] + waves[2] * waves[2];
}

/// Calls visit(waves, index) for every mode of a rank, where `index` counts its modes; from several threads.
template <class Visit>
void for_each_mode(const Slabs& slabs, int rank, int threads, Visit visit) {
  const tensor::Range rows = slabs.planes(rank);
  io::in_threads(threads, rows.hi - rows.lo, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t index = begin * slabs.size * slabs.half();
    for (std::int64_t h = begin; h < end; ++h) {
      for (std::int64_t d = 0; d < slabs.size; ++d) {
        const Waves row{waves_of(d, slabs.size), waves_of(rows.lo + h, slabs.size), 0};
        for (std::int64_t w = 0; w < slabs.half(); ++w) visit(Waves{row[0], row[1], w}, index++);
      }
    }
  });
}

/// A standard complex normal number (mean square 1) that belongs to the wave, whatever the size of the cube; that of
/// the opposite wave is its conjugate.
std::complex<double> noise_of(std::uint64_t key, Waves waves);

/// A Gaussian random field of a given spectrum.
struct RandomField {
  std::uint64_t key = 0;
  double box = 0;  ///< side in Mpc/h
};

/// Writes a rank's modes of the linear density contrast today. Ambiguous modes and the mean are 0.
void draw_modes(const RandomField& field, const PowerSpectrum& spectrum, const SlabFft& fft, int rank, int threads,
                std::span<Complex> modes);

}  // namespace orthant::data::generate
