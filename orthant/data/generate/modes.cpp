#include "orthant/data/generate/modes.hpp"

#include "orthant/base/random.hpp"

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

/// True for the one of two opposite waves which gets the conjugate of the number drawn for the other.
bool is_mirrored(const Waves& waves) {
  if (waves[2] != 0) return waves[2] < 0;
  if (waves[1] != 0) return waves[1] < 0;
  return waves[0] < 0;
}

/// The position of a wave in the stream of random numbers: 21 bits per dim.
std::uint64_t place_of(const Waves& waves) {
  constexpr std::int64_t offset = 1 << 20;
  std::uint64_t place = 0;
  for (const std::int64_t count : waves) place = (place << 21U) | static_cast<std::uint64_t>(count + offset);
  return place;
}

}  // namespace

std::complex<double> noise_of(std::uint64_t key, Waves waves) {
  const bool mirrored = is_mirrored(waves);
  if (mirrored) waves = {-waves[0], -waves[1], -waves[2]};
  const std::uint64_t place = place_of(waves);
  const double radius = std::sqrt(-std::log1p(-base::uniform(key, 2 * place)));
  const double angle = 2 * std::numbers::pi * base::uniform(key, 2 * place + 1);
  return std::polar(radius, mirrored ? -angle : angle);
}

void draw_modes(const RandomField& field, const PowerSpectrum& spectrum, const SlabFft& fft, int rank, int threads,
                std::span<Complex> modes) {
  const std::int64_t size = fft.slabs().size;
  const double step = 2 * std::numbers::pi / field.box;
  const double volume = field.box * field.box * field.box;
  // The spectrum depends only on the square of the wave vector, which is a whole number.
  std::vector<double> amplitudes(static_cast<std::size_t>(3 * (size / 2) * (size / 2) + 1));
  io::in_threads(threads, static_cast<std::int64_t>(amplitudes.size()), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i)
      amplitudes[static_cast<std::size_t>(i)] = std::sqrt(spectrum(step * std::sqrt(static_cast<double>(i))) / volume);
  });
  for_each_mode(fft.slabs(), rank, threads, [&](const Waves& waves, std::int64_t index) {
    const std::int64_t square = square_of(waves);
    const bool is_empty = square == 0 || is_ambiguous(waves, size);
    modes[static_cast<std::size_t>(index)] =
        is_empty ? Complex{} : Complex(amplitudes[static_cast<std::size_t>(square)] * noise_of(field.key, waves));
  });
}

}  // namespace orthant::data::generate
