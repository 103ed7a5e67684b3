#include "orthant/data/generate/transfer_function.hpp"

#include <cmath>
#include <numbers>

namespace orthant::data::generate {
namespace {

/// The temperature of the microwave background over 2.7 K.
constexpr double theta = 2.7255 / 2.7;

double square(double x) { return x * x; }

/// Equation 19 and 20.
double pressureless(double q, double alpha, double beta) {
  const double c = 14.2 / alpha + 386 / (1 + 69.9 * std::pow(q, 1.08));
  const double log = std::log(std::numbers::e + 1.8 * beta * q);
  return log / (log + c * q * q);
}

/// Equation 15.
double suppression(double y) {
  const double root = std::sqrt(1 + y);
  return y * (-6 * root + (2 + 3 * y) * std::log((root + 1) / (root - 1)));
}

double spherical_bessel_0(double x) { return x < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x; }

}  // namespace

const std::vector<std::string>& transfer_names() {
  static const std::vector<std::string> names{"eisenstein-hu", "no-wiggle", "bbks"};
  return names;
}

TransferFunction::TransferFunction(const Cosmology& cosmology, TransferKind kind) : cosmology_(cosmology), kind_(kind) {
  const double om = cosmology.omega_m * square(cosmology.h);
  const double ob = cosmology.omega_b * square(cosmology.h);
  baryon_share_ = cosmology.omega_b / cosmology.omega_m;
  const double dark_share = 1 - baryon_share_;

  const double z_equality = 2.50e4 * om * std::pow(theta, -4);
  k_equality_ = 7.46e-2 * om * std::pow(theta, -2);
  const double b1 = 0.313 * std::pow(om, -0.419) * (1 + 0.607 * std::pow(om, 0.674));
  const double b2 = 0.238 * std::pow(om, 0.223);
  const double z_drag = 1291 * std::pow(om, 0.251) / (1 + 0.659 * std::pow(om, 0.828)) * (1 + b1 * std::pow(ob, b2));
  const auto ratio = [&](double z) { return 31.5 * ob * std::pow(theta, -4) * 1000 / z; };
  const double r_drag = ratio(z_drag), r_equality = ratio(z_equality);
  sound_horizon_ = 2 / (3 * k_equality_) * std::sqrt(6 / r_equality) *
                   std::log((std::sqrt(1 + r_drag) + std::sqrt(r_drag + r_equality)) / (1 + std::sqrt(r_equality)));
  k_silk_ = 1.6 * std::pow(ob, 0.52) * std::pow(om, 0.73) * (1 + std::pow(10.4 * om, -0.95));

  const double a1 = std::pow(46.9 * om, 0.670) * (1 + std::pow(32.1 * om, -0.532));
  const double a2 = std::pow(12.0 * om, 0.424) * (1 + std::pow(45.0 * om, -0.582));
  alpha_c_ = std::pow(a1, -baryon_share_) * std::pow(a2, -std::pow(baryon_share_, 3));
  const double c1 = 0.944 / (1 + std::pow(458 * om, -0.708));
  const double c2 = std::pow(0.395 * om, -0.0266);
  beta_c_ = 1 / (1 + c1 * (std::pow(dark_share, c2) - 1));

  alpha_b_ =
      2.07 * k_equality_ * sound_horizon_ * std::pow(1 + r_drag, -0.75) * suppression((1 + z_equality) / (1 + z_drag));
  beta_b_ = 0.5 + baryon_share_ + (3 - 2 * baryon_share_) * std::sqrt(square(17.2 * om) + 1);
  beta_node_ = 8.41 * std::pow(om, 0.435);
}

double TransferFunction::operator()(double k) const {
  if (k <= 0) return 1;
  if (kind_ == TransferKind::eisenstein_hu) return with_wiggles(k * cosmology_.h);
  if (kind_ == TransferKind::no_wiggle) return without_wiggles(k);
  return bbks(k);
}

double TransferFunction::with_wiggles(double k) const {
  const double q = k / (13.41 * k_equality_);
  const double ks = k * sound_horizon_;
  const double f = 1 / (1 + std::pow(ks / 5.4, 4));
  const double dark = f * pressureless(q, 1, beta_c_) + (1 - f) * pressureless(q, alpha_c_, beta_c_);

  const double shifted = ks / std::cbrt(1 + std::pow(beta_node_ / ks, 3));
  const double damped = alpha_b_ / (1 + std::pow(beta_b_ / ks, 3)) * std::exp(-std::pow(k / k_silk_, 1.4));
  const double baryons = (pressureless(q, 1, 1) / (1 + square(ks / 5.2)) + damped) * spherical_bessel_0(shifted);
  return baryon_share_ * baryons + (1 - baryon_share_) * dark;
}

double TransferFunction::without_wiggles(double k) const {
  const double om = cosmology_.omega_m * square(cosmology_.h);
  const double ob = cosmology_.omega_b * square(cosmology_.h);
  const double s = 44.5 * std::log(9.83 / om) / std::sqrt(1 + 10 * std::pow(ob, 0.75));
  const double alpha =
      1 - 0.328 * std::log(431 * om) * baryon_share_ + 0.38 * std::log(22.3 * om) * square(baryon_share_);
  const double gamma =
      cosmology_.omega_m * cosmology_.h * (alpha + (1 - alpha) / (1 + std::pow(0.43 * k * cosmology_.h * s, 4)));
  const double q = k * square(theta) / gamma;
  const double log = std::log(2 * std::numbers::e + 1.8 * q);
  return log / (log + (14.2 + 731 / (1 + 62.5 * q)) * q * q);
}

double TransferFunction::bbks(double k) const {
  const double gamma = cosmology_.omega_m * cosmology_.h *
                       std::exp(-cosmology_.omega_b * (1 + std::sqrt(2 * cosmology_.h) / cosmology_.omega_m));
  const double q = k / gamma;
  const double polynomial = 1 + 3.89 * q + square(16.1 * q) + std::pow(5.46 * q, 3) + std::pow(6.71 * q, 4);
  return std::log1p(2.34 * q) / (2.34 * q) * std::pow(polynomial, -0.25);
}

}  // namespace orthant::data::generate
