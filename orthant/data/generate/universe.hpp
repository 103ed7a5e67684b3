#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/arrays/number.hpp"
#include "orthant/data/generate/cosmology.hpp"
#include "orthant/data/generate/slab_fft.hpp"
#include "orthant/data/generate/transfer_function.hpp"

#include <array>
#include <functional>
#include <vector>

namespace orthant::data::generate {

/// What all universes of a set have in common.
struct UniverseSettings {
  std::int64_t size = 64;                         ///< cells along each side; there are as many particles as cells
  double box = 64;                                ///< side in Mpc/h
  std::vector<double> redshifts{3, 1.5, 0.5, 0};  ///< one channel each
  TransferKind transfer = TransferKind::eisenstein_hu;
  arrays::NumberType type = arrays::NumberType::i16;  ///< or f32
  std::uint64_t seed = 0;
};

/// The value of a cell with the mean density as an int16; as a float it is 1.
inline constexpr int counts_per_particle = 64;

/// One universe's parameters: Omega_m, sigma_8, n_s and H_0 in km/s/Mpc.
struct UniverseParameters {
  std::array<double, 4> physical{};
  std::array<double, 4> unit{};  ///< from -1 to 1 over the range that they are drawn from

  [[nodiscard]] Cosmology cosmology() const;
};

/// The middle of the range of each parameter. The range extends to both sides by parameter_spread times this value.
inline constexpr std::array<double, 4> parameter_means{0.3089, 0.8159, 0.9667, 67.74};
inline constexpr double parameter_spread = 0.3;

/// Parameters of universe number `universe`: evenly spread (Sobol's sequence), shifted by the seed.
UniverseParameters draw_parameters(std::uint64_t seed, std::int64_t universe);
UniverseParameters parameters_of(const std::array<double, 4>& physical);

struct UniverseOptions {
  int threads = 1;
  std::function<void()> after_step = [] {};  ///< called steps_of_universe() times, at the same points on all ranks
};
int steps_of_universe(const UniverseSettings& settings);

/// Collective. This rank's planes of one universe, [d][h][w][redshift], of settings.type.
std::vector<std::byte> make_universe(comm::Comm& comm, const UniverseSettings& settings,
                                     const UniverseParameters& parameters, std::int64_t universe,
                                     const UniverseOptions& options);

/// The most memory that any of `ranks` ranks needs to make a universe; the first rank needs most.
std::int64_t universe_bytes(const UniverseSettings& settings, int ranks, int threads);

}  // namespace orthant::data::generate
