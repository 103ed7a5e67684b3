#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/tensor/box.hpp"

#include <complex>
#include <memory>
#include <span>
#include <vector>

namespace orthant::data::generate {

using Complex = std::complex<float>;

/// How a cube of size^3 cells is distributed: each rank has some planes of depth and, of the Fourier modes, some rows
/// of h.
struct Slabs {
  std::int64_t size = 0;
  int ranks = 1;

  [[nodiscard]] tensor::Range planes(int rank) const;
  /// The number of modes along w; the others follow from the symmetry of real fields.
  [[nodiscard]] std::int64_t half() const { return size / 2 + 1; }
  /// Cells and modes of one rank.
  [[nodiscard]] std::int64_t cells(int rank) const;
  [[nodiscard]] std::int64_t modes(int rank) const;
};

/// Fourier transforms of a cube that is cut into slabs. A field is [plane][h][w]; its modes are [h][d][w], h from
/// planes(rank), w up to half(). Each line is transformed separately by the same plan, so that the result does not
/// depend on the number of ranks or threads.
class SlabFft {
 public:
  SlabFft(comm::Comm& comm, std::int64_t size, int threads);
  SlabFft(const SlabFft&) = delete;
  SlabFft& operator=(const SlabFft&) = delete;
  ~SlabFft();

  [[nodiscard]] const Slabs& slabs() const { return slabs_; }
  [[nodiscard]] tensor::Range planes() const { return slabs_.planes(comm_.rank()); }

  /// Collective. modes = sum over cells of field * exp(-i k x) / cells, so that backward() undoes it.
  void forward(std::span<const float> field, std::span<Complex> modes);
  /// Collective. field = sum over modes of modes * exp(i k x); `modes` is used up.
  void backward(std::span<Complex> modes, std::span<float> field);

  /// The bytes that the transforms allocate on a rank.
  static std::int64_t bytes(const Slabs& slabs, int rank, int threads);

 private:
  struct Plans;
  enum class Direction { to_modes, to_planes };

  void transform_planes_forward(std::span<const float> field);
  void transform_planes_backward(std::span<float> field);
  void transform_lines(std::span<Complex> modes, Direction direction);
  /// Moves lines between sheet_ ([h][plane][w]) and modes ([h][d][w]).
  void transpose(std::span<Complex> modes, Direction direction);

  comm::Comm& comm_;
  Slabs slabs_;
  int threads_;
  std::unique_ptr<Plans> plans_;
  std::vector<Complex> sheet_;
};

}  // namespace orthant::data::generate
