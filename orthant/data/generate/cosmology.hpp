#pragma once

namespace orthant::data::generate {

/// A flat universe of matter and a cosmological constant.
struct Cosmology {
  double omega_m = 0.3089;  ///< matter today, baryons included, as a fraction of the critical density
  double sigma_8 = 0.8159;  ///< linear rms of the density contrast in spheres of 8 Mpc/h today
  double n_s = 0.9667;      ///< tilt of the primordial spectrum
  double h = 0.6774;        ///< Hubble's constant in 100 km/s/Mpc
  double omega_b = 0.0486;  ///< baryons today
};

/// The density of matter at redshift z as a fraction of the critical density.
double omega_m_at(const Cosmology& cosmology, double z);

/// How far linear structure has grown at redshift z, as a fraction of today's: D1 = H(a) * integral of da / (a H)^3.
double first_growth(const Cosmology& cosmology, double z);

/// The second-order growth that goes with it, D2 = -3/7 D1^2 Omega_m(z)^(-1/143) (Bouchet et al. 1995).
double second_growth(const Cosmology& cosmology, double z);

}  // namespace orthant::data::generate
