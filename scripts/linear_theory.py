"""Linear theory of structure in a flat universe, and the power of volumes that `orthant data make cosmology` made.

Written from the papers and apart from the program, to judge it: Eisenstein & Hu 1998 (ApJ 496, 605) for the transfer
function, and the growth of matter and a cosmological constant.
"""

import h5py
import numpy as np

OMEGA_B, T_CMB = 0.0486, 2.7255


def transfer(k, omega_m, h):
    """Equations 2 to 24 of the paper; k in h/Mpc."""
    theta, fb = T_CMB / 2.7, OMEGA_B / omega_m
    m, b, k = omega_m * h * h, OMEGA_B * h * h, np.asarray(k) * h
    z_eq, k_eq = 2.5e4 * m / theta**4, 0.0746 * m / theta**2
    b1 = 0.313 * m**-0.419 * (1 + 0.607 * m**0.674)
    z_d = 1291 * m**0.251 / (1 + 0.659 * m**0.828) * (1 + b1 * b ** (0.238 * m**0.223))
    r_d, r_eq = (31.5e3 * b / theta**4 / z for z in (z_d, z_eq))
    s = 2 / (3 * k_eq) * np.sqrt(6 / r_eq) * np.log((np.sqrt(1 + r_d) + np.sqrt(r_d + r_eq)) / (1 + np.sqrt(r_eq)))
    silk = 1.6 * b**0.52 * m**0.73 * (1 + (10.4 * m) ** -0.95)
    a1 = (46.9 * m) ** 0.67 * (1 + (32.1 * m) ** -0.532)
    a2 = (12 * m) ** 0.424 * (1 + (45 * m) ** -0.582)
    alpha_c = a1**-fb * a2 ** -(fb**3)
    beta_c = 1 / (1 + 0.944 / (1 + (458 * m) ** -0.708) * ((1 - fb) ** ((0.395 * m) ** -0.0266) - 1))
    q = k / (13.41 * k_eq)

    def smooth(alpha, beta):
        log = np.log(np.e + 1.8 * beta * q)
        return log / (log + (14.2 / alpha + 386 / (1 + 69.9 * q**1.08)) * q * q)

    f = 1 / (1 + (k * s / 5.4) ** 4)
    dark = f * smooth(1, beta_c) + (1 - f) * smooth(alpha_c, beta_c)
    y = (1 + z_eq) / (1 + z_d)
    root = np.sqrt(1 + y)
    alpha_b = 2.07 * k_eq * s * (1 + r_d) ** -0.75 * y * (-6 * root + (2 + 3 * y) * np.log((root + 1) / (root - 1)))
    beta_b = 0.5 + fb + (3 - 2 * fb) * np.sqrt((17.2 * m) ** 2 + 1)
    x = k * s / (1 + (8.41 * m**0.435 / (k * s)) ** 3) ** (1 / 3)
    baryons = smooth(1, 1) / (1 + (k * s / 5.2) ** 2) + alpha_b / (1 + (beta_b / (k * s)) ** 3) * np.exp(-((k / silk) ** 1.4))
    return fb * baryons * np.sinc(x / np.pi) + (1 - fb) * dark


def linear_power(k, omega_m, sigma_8, n_s, hubble):
    """P(k) today, in (Mpc/h)^3."""
    grid = np.geomspace(1e-5, 50, 20000)
    shape = grid**n_s * transfer(grid, omega_m, hubble / 100) ** 2
    x = 8 * grid
    window = 3 * (np.sin(x) - x * np.cos(x)) / x**3
    integrand = grid**2 * shape * window**2
    variance = np.sum((integrand[1:] + integrand[:-1]) / 2 * np.diff(grid)) / (2 * np.pi**2)
    return sigma_8**2 / variance * k**n_s * transfer(k, omega_m, hubble / 100) ** 2


def growth(z, omega_m):
    def grown(a):
        x = np.linspace(0, a, 20001)[1:]
        rate = 1 / (np.sqrt(omega_m / x + (1 - omega_m) * x**2)) ** 3
        return np.sqrt(omega_m / a**3 + 1 - omega_m) * (np.sum(rate) - rate[-1] / 2) * (x[1] - x[0])

    return grown(1 / (1 + z)) / grown(1)


def measured_power(file, channel, edges):
    """Mean k, mean P, mean P / linear theory, and number of modes in each shell; edges in waves per box."""
    with h5py.File(file) as f:
        density = f["full"][..., channel].astype(float)
        box, parameters = float(f.attrs["box_mpc_per_h"][0]), f["physPar"][:].astype(float)
        z = float(f.attrs["redshifts"][channel])
    size = density.shape[0]
    modes = np.fft.rfftn(density / density.mean() - 1) / size**3
    waves = np.meshgrid(*[np.fft.fftfreq(size, 1 / size)] * 2, np.fft.rfftfreq(size, 1 / size), indexing="ij")
    for count in waves:
        modes /= np.sinc(count / size) ** 2
    length = np.sqrt(sum(count**2 for count in waves))
    used = (waves[2] > 0) & (length < size / 2)  # one of each pair of opposite waves
    k = 2 * np.pi / box * length[used]
    power = np.abs(modes[used]) ** 2 * box**3
    ratio = power / (linear_power(k, *parameters) * growth(z, parameters[0]) ** 2)
    shell = np.digitize(length[used], edges)
    return [(k[shell == i].mean(), power[shell == i].mean(), ratio[shell == i].mean(), np.count_nonzero(shell == i))
            for i in range(1, len(edges)) if np.any(shell == i)]
