#include "orthant/data/generate/displacement.hpp"

#include "orthant/data/generate/modes.hpp"

#include <numbers>

namespace orthant::data::generate {
namespace {

using Field = std::vector<float>;

/// Fields that are derived from the modes of a density, by one transform each.
class Derived {
 public:
  Derived(comm::Comm& comm, SlabFft& fft, const DisplacementOptions& options)
      : rank_(comm.rank()),
        fft_(fft),
        options_(options),
        modes_(static_cast<std::size_t>(fft.slabs().modes(comm.rank()))),
        cells_(static_cast<std::size_t>(fft.slabs().cells(comm.rank()))) {}

  [[nodiscard]] Field empty() const { return Field(cells_); }

  /// -d/dx_i of the potential whose laplacian is the density: i k / k^2, in cells.
  void gradient(std::span<const Complex> density, std::size_t dim, Field& into) {
    const std::int64_t size = fft_.slabs().size;
    const auto wave = static_cast<float>(static_cast<double>(size) / (2 * std::numbers::pi));
    transform(density, into, [&](const Waves& waves, float square, Complex mode) {
      return is_ambiguous(waves, size) ? Complex{} : Complex(0, wave * static_cast<float>(waves[dim]) / square) * mode;
    });
  }

  /// d2/dx_i dx_j of it: k_i k_j / k^2.
  void curvature(std::span<const Complex> density, std::size_t i, std::size_t j, Field& into) {
    transform(density, into, [&](const Waves& waves, float square, Complex mode) {
      return static_cast<float>(waves[i] * waves[j]) / square * mode;
    });
  }

  /// Calls visit(cell) for each, from several threads.
  template <class Visit>
  void for_each_cell(Visit visit) const {
    io::in_threads(options_.threads, static_cast<std::int64_t>(cells_), [&](std::int64_t begin, std::int64_t end, int) {
      for (auto cell = static_cast<std::size_t>(begin); cell < static_cast<std::size_t>(end); ++cell) visit(cell);
    });
  }

 private:
  template <class Factor>
  void transform(std::span<const Complex> density, Field& into, Factor factor) {
    for_each_mode(fft_.slabs(), rank_, options_.threads, [&](const Waves& waves, std::int64_t index) {
      const auto at = static_cast<std::size_t>(index);
      const auto square = static_cast<float>(square_of(waves));
      modes_[at] = square == 0 ? Complex{} : factor(waves, square, density[at]);
    });
    fft_.backward(modes_, into);
    options_.after_transform();
  }

  int rank_;
  SlabFft& fft_;
  const DisplacementOptions& options_;
  std::vector<Complex> modes_;
  std::size_t cells_;
};

/// Writes the density of phi2 to `sum`; `a` and `b` are scratch.
void second_density(Derived& derived, std::span<const Complex> density, Field& sum, Field& a, Field& b) {
  derived.curvature(density, 0, 0, a);
  derived.curvature(density, 1, 1, b);
  derived.for_each_cell([&](std::size_t i) {
    sum[i] = a[i] * b[i];
    a[i] += b[i];
  });
  derived.curvature(density, 2, 2, b);
  derived.for_each_cell([&](std::size_t i) { sum[i] += a[i] * b[i]; });
  for (const auto& [i, j] : {std::pair{0U, 1U}, {0U, 2U}, {1U, 2U}}) {
    derived.curvature(density, i, j, b);
    derived.for_each_cell([&](std::size_t cell) { sum[cell] -= b[cell] * b[cell]; });
  }
}

}  // namespace

Displacements displace(comm::Comm& comm, SlabFft& fft, std::span<Complex> modes, const DisplacementOptions& options) {
  Derived derived(comm, fft, options);
  Displacements displacements;
  for (std::size_t dim = 0; dim < 3; ++dim) {
    displacements.first[dim] = derived.empty();
    displacements.second[dim] = derived.empty();
    derived.gradient(modes, dim, displacements.first[dim]);
  }
  auto& [a, b, sum] = displacements.second;
  second_density(derived, modes, sum, a, b);
  fft.forward(sum, modes);
  options.after_transform();
  for (std::size_t dim = 0; dim < 3; ++dim) derived.gradient(modes, dim, displacements.second[dim]);
  return displacements;
}

}  // namespace orthant::data::generate
