#include "orthant/data/generate/cosmology.hpp"

#include <cmath>

namespace orthant::data::generate {
namespace {

/// (H / H_0)^2 at scale factor a.
double expansion_squared(const Cosmology& cosmology, double a) {
  return cosmology.omega_m / (a * a * a) + 1 - cosmology.omega_m;
}

/// Simpson's rule in a = x^2, where the integrand da / (a H)^3 ~ a^(3/2) da is smooth down to 0.
double growth_integral(const Cosmology& cosmology, double a) {
  constexpr int steps = 512;
  const auto integrand = [&](double x) {
    const double at = x * x;
    if (at == 0) return 0.0;
    const double velocity = at * std::sqrt(expansion_squared(cosmology, at));
    return 2 * x / (velocity * velocity * velocity);
  };
  const double step = std::sqrt(a) / steps;
  double sum = integrand(0) + integrand(std::sqrt(a));
  for (int i = 1; i < steps; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(i * step);
  return sum * step / 3;
}

double unnormalised_growth(const Cosmology& cosmology, double a) {
  return std::sqrt(expansion_squared(cosmology, a)) * growth_integral(cosmology, a);
}

}  // namespace

double omega_m_at(const Cosmology& cosmology, double z) {
  const double a = 1 / (1 + z);
  return cosmology.omega_m / (a * a * a) / expansion_squared(cosmology, a);
}

double first_growth(const Cosmology& cosmology, double z) {
  return unnormalised_growth(cosmology, 1 / (1 + z)) / unnormalised_growth(cosmology, 1);
}

double second_growth(const Cosmology& cosmology, double z) {
  const double first = first_growth(cosmology, z);
  return -3.0 / 7 * first * first * std::pow(omega_m_at(cosmology, z), -1.0 / 143);
}

}  // namespace orthant::data::generate
