#include "orthant/data/generate/power_spectrum.hpp"

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

/// The Fourier transform of a sphere of radius 1 and volume 1.
double top_hat(double x) {
  if (x < 1e-2) return 1 - x * x / 10 + x * x * x * x / 280;
  return 3 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
}

}  // namespace

PowerSpectrum::PowerSpectrum(const Cosmology& cosmology, TransferKind kind)
    : n_s_(cosmology.n_s), transfer_(cosmology, kind) {
  const double unit = sigma(8);
  amplitude_ = cosmology.sigma_8 * cosmology.sigma_8 / (unit * unit);
}

double PowerSpectrum::operator()(double k) const {
  if (k <= 0) return 0;
  const double transfer = transfer_(k);
  return amplitude_ * std::pow(k, n_s_) * transfer * transfer;
}

double PowerSpectrum::sigma(double radius) const {
  // Trapezoids in ln k: both ends vanish, so the rule converges fast.
  constexpr double lowest = -14, highest = 7;
  constexpr int steps = 8192;
  const double step = (highest - lowest) / steps;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double kr = std::exp(lowest + i * step);
    const double k = kr / radius;
    const double window = top_hat(kr);
    sum += k * k * k * (*this)(k)*window * window;
  }
  return std::sqrt(sum * step / (2 * std::numbers::pi * std::numbers::pi));
}

}  // namespace orthant::data::generate
