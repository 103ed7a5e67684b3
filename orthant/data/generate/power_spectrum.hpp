#pragma once

#include "orthant/data/generate/transfer_function.hpp"

namespace orthant::data::generate {

/// The linear matter power spectrum today, P(k) = A k^n_s T(k)^2 with A such that sigma(8 Mpc/h) = sigma_8.
/// k in h/Mpc, P in (Mpc/h)^3.
class PowerSpectrum {
 public:
  PowerSpectrum(const Cosmology& cosmology, TransferKind kind);
  [[nodiscard]] double operator()(double k) const;
  /// The rms of the linear density contrast in spheres of this radius in Mpc/h.
  [[nodiscard]] double sigma(double radius) const;

 private:
  double n_s_;
  TransferFunction transfer_;
  double amplitude_ = 1;
};

}  // namespace orthant::data::generate
