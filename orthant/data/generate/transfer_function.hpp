#pragma once

#include "orthant/data/generate/cosmology.hpp"

#include <string>
#include <vector>

namespace orthant::data::generate {

enum class TransferKind {
  eisenstein_hu,  ///< Eisenstein & Hu 1998 (ApJ 496, 605), equations 2 to 24: with baryon wiggles
  no_wiggle,      ///< the same paper's smooth shape, equations 26 to 31
  bbks,           ///< Bardeen et al. 1986, with the shape parameter of Sugiyama 1995
};

/// "eisenstein-hu", "no-wiggle", "bbks", in the order of the enumeration.
const std::vector<std::string>& transfer_names();

/// How much a wave has grown relative to the longest ones; T(0) = 1. k in h/Mpc.
class TransferFunction {
 public:
  TransferFunction(const Cosmology& cosmology, TransferKind kind);
  [[nodiscard]] double operator()(double k) const;
  /// The distance that sound travelled before baryons were released, in Mpc/h.
  [[nodiscard]] double sound_horizon() const { return sound_horizon_ * cosmology_.h; }

 private:
  [[nodiscard]] double with_wiggles(double k) const;
  [[nodiscard]] double without_wiggles(double k) const;
  [[nodiscard]] double bbks(double k) const;

  Cosmology cosmology_;
  TransferKind kind_;
  // In the paper's names and units (Mpc, no h).
  double baryon_share_ = 0, k_equality_ = 0, sound_horizon_ = 0, k_silk_ = 0;
  double alpha_c_ = 0, beta_c_ = 0, alpha_b_ = 0, beta_b_ = 0, beta_node_ = 0;
};

}  // namespace orthant::data::generate
