#pragma once

#include "orthant/data/generate/slab_fft.hpp"

#include <array>
#include <functional>
#include <span>
#include <vector>

namespace orthant::data::generate {

/// How far the particles of a rank's planes, one per cell, move: D1 * first - D2 * second, in cells; d, h, w.
struct Displacements {
  std::array<std::vector<float>, 3> first, second;
};

struct DisplacementOptions {
  int threads = 1;
  std::function<void()> after_transform = [] {};  ///< called `transforms_of_displacements` times
};

inline constexpr int transforms_of_displacements = 13;

/// Collective. Second-order Lagrangian perturbation theory: first = -grad phi1, second = -grad phi2 with
/// laplace phi1 = delta and laplace phi2 = sum over i < j of phi1_ii phi1_jj - phi1_ij^2 (Scoccimarro 1998).
/// `modes` are those of the linear density contrast today, and are used up.
Displacements displace(comm::Comm& comm, SlabFft& fft, std::span<Complex> modes, const DisplacementOptions& options);

}  // namespace orthant::data::generate
