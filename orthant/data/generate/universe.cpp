#include "orthant/data/generate/universe.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/random.hpp"
#include "orthant/data/generate/deposit.hpp"
#include "orthant/data/generate/displacement.hpp"
#include "orthant/data/generate/modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace orthant::data::generate {
namespace {

/// Streams of random numbers of one seed.
enum class Stream : std::uint64_t { parameters = 1, phases = 2 };

std::uint64_t key_of(std::uint64_t seed, Stream stream) {
  return base::keyed(seed, static_cast<std::uint64_t>(stream));
}

/// Point `index` of Sobol's sequence in one of four dims, as a fraction of 2^32 (polynomials and first numbers of Joe
/// and Kuo 2008): the first 2^n points have one in each of 2^n equal ranges.
std::uint32_t sobol(std::uint32_t index, std::size_t dim) {
  struct DirectionNumbers {
    unsigned degree, coefficients;
    std::array<std::uint32_t, 3> numbers;
  };
  constexpr std::array<DirectionNumbers, 4> initial{{{0, 0, {}}, {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}}};
  const auto& [degree, coefficients, numbers] = initial[dim];
  std::array<std::uint32_t, 32> directions{};
  std::uint32_t point = 0;
  for (unsigned bit = 0; bit < 32; ++bit) {
    if (degree == 0) {
      directions[bit] = 1U << (31 - bit);
    } else if (bit < degree) {
      directions[bit] = numbers[bit] << (31 - bit);
    } else {
      directions[bit] = directions[bit - degree] ^ (directions[bit - degree] >> degree);
      for (unsigned i = 1; i < degree; ++i)
        directions[bit] ^= ((coefficients >> (degree - 1 - i)) & 1U) * directions[bit - i];
    }
    if (((index >> bit) & 1U) != 0) point ^= directions[bit];
  }
  return point;
}

/// Particles are expected to move less than this, in Mpc/h. Only the prediction of memory relies on it.
constexpr double farthest_move = 80;

Displacements make_displacements(comm::Comm& comm, const UniverseSettings& settings, const Cosmology& cosmology,
                                 std::int64_t universe, const UniverseOptions& options) {
  SlabFft fft(comm, settings.size, options.threads);
  std::vector<Complex> modes(static_cast<std::size_t>(fft.slabs().modes(comm.rank())));
  const RandomField field{
      .key = base::keyed(key_of(settings.seed, Stream::phases), static_cast<std::uint64_t>(universe)),
      .box = settings.box};
  draw_modes(field, PowerSpectrum(cosmology, settings.transfer), fft, comm.rank(), options.threads, modes);
  options.after_step();
  return displace(comm, fft, modes, {.threads = options.threads, .after_transform = options.after_step});
}

std::int16_t as_count(std::uint32_t units) {
  constexpr std::uint32_t per_count = particle_unit / counts_per_particle;
  return static_cast<std::int16_t>(
      std::min<std::uint32_t>(units / per_count + (units % per_count * 2 >= per_count), 32767));
}

float as_density(std::uint32_t units) { return static_cast<float>(units) / static_cast<float>(particle_unit); }

/// Writes one channel of [cell][channel].
template <class Number, class Convert>
void store(std::span<const std::uint32_t> plane, std::byte* into, std::size_t channels, Convert convert) {
  for (std::size_t cell = 0; cell < plane.size(); ++cell) {
    const Number number = convert(plane[cell]);
    std::memcpy(into + cell * channels * sizeof(Number), &number, sizeof(Number));
  }
}

}  // namespace

Cosmology UniverseParameters::cosmology() const {
  return {.omega_m = physical[0], .sigma_8 = physical[1], .n_s = physical[2], .h = physical[3] / 100};
}

UniverseParameters parameters_of(const std::array<double, 4>& physical) {
  UniverseParameters parameters{.physical = physical};
  for (std::size_t i = 0; i < 4; ++i) parameters.unit[i] = (physical[i] / parameter_means[i] - 1) / parameter_spread;
  return parameters;
}

UniverseParameters draw_parameters(std::uint64_t seed, std::int64_t universe) {
  UniverseParameters parameters;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto shift = static_cast<std::uint32_t>(base::keyed(key_of(seed, Stream::parameters), i) >> 32U);
    const std::uint32_t place = sobol(static_cast<std::uint32_t>(universe), i) ^ shift;
    parameters.unit[i] = 2 * ((place + 0.5) * 0x1.0p-32) - 1;
    parameters.physical[i] = parameter_means[i] * (1 + parameter_spread * parameters.unit[i]);
  }
  return parameters;
}

int steps_of_universe(const UniverseSettings& settings) {
  return 1 + transforms_of_displacements + static_cast<int>(settings.redshifts.size());
}

std::vector<std::byte> make_universe(comm::Comm& comm, const UniverseSettings& settings,
                                     const UniverseParameters& parameters, std::int64_t universe,
                                     const UniverseOptions& options) {
  const Cosmology cosmology = parameters.cosmology();
  const Displacements displacements = make_displacements(comm, settings, cosmology, universe, options);
  const Slabs slabs{.size = settings.size, .ranks = comm.size()};
  const tensor::Range planes = slabs.planes(comm.rank());
  const auto channels = settings.redshifts.size();
  const auto item = static_cast<std::size_t>(bytes_of(settings.type));
  const auto area = static_cast<std::size_t>(settings.size * settings.size);
  std::vector<std::byte> volume(static_cast<std::size_t>(slabs.cells(comm.rank())) * channels * item);
  Deposit deposit(comm, slabs, options.threads);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double z = settings.redshifts[channel];
    deposit.place(displacements, {.first = first_growth(cosmology, z), .second = second_growth(cosmology, z)});
    for (std::int64_t d = planes.lo; d < planes.hi; ++d) {
      std::byte* into = volume.data() + (static_cast<std::size_t>(d - planes.lo) * area * channels + channel) * item;
      if (settings.type == arrays::NumberType::f32) {
        store<float>(deposit.plane(d), into, channels, as_density);
      } else {
        store<std::int16_t>(deposit.plane(d), into, channels, as_count);
      }
    }
    options.after_step();
  }
  return volume;
}

std::int64_t universe_bytes(const UniverseSettings& settings, int ranks, int threads) {
  base::checked_product({settings.size, settings.size, settings.size, 64});
  const Slabs slabs{.size = settings.size, .ranks = ranks};
  const std::int64_t cells = slabs.cells(0), channels = static_cast<std::int64_t>(settings.redshifts.size());
  const std::int64_t displacements = 6 * cells * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t modes = 2 * slabs.modes(0) * static_cast<std::int64_t>(sizeof(Complex));
  const auto reach = static_cast<std::int64_t>(farthest_move * static_cast<double>(settings.size) / settings.box) + 1;
  const std::int64_t volume = cells * channels * bytes_of(settings.type);
  return displacements + std::max(modes + SlabFft::bytes(slabs, 0, threads),
                                  volume + Deposit::bytes(slabs, 0, std::min(reach, settings.size)));
}

}  // namespace orthant::data::generate
