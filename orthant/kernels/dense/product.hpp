#pragma once

#include "orthant/kernels/dense/shape.hpp"
#include "orthant/kernels/matrix/tiles.hpp"

namespace orthant::kernels::dense {

/// c[m][n] = sum over k of a[m][k] * b(k, n), where b is the weights of a dense layer or their transpose. Every thread
/// packs its columns of b, panel by panel, and multiplies all its rows of a by them.
class Product {
 public:
  struct Extents {
    std::int64_t rows = 0, inner = 0, columns = 0;
    bool transposed = false;  ///< b(k, n) is weights[n][k], else weights[k][n]
  };
  struct Operands {
    const float* a = nullptr;
    std::int64_t a_row = 0;
    const float* weights = nullptr;
    float* c = nullptr;
    std::int64_t c_row = 0;
  };

  Product(const Extents& extents, int threads);

  [[nodiscard]] std::int64_t thread_floats() const { return packed_floats_ + copy_rows_ * copy_row_; }
  /// Of c.
  [[nodiscard]] Part part(int thread, int team) const;
  /// `memory` has thread_floats() floats.
  void run(const Operands& operands, const Part& part, float* memory) const;

 private:
  [[nodiscard]] const float* weights_at(const Operands& operands, std::int64_t k, std::int64_t n) const;
  [[nodiscard]] std::int64_t panel_step(std::int64_t depth) const;
  void pack_block(const Operands& operands, Range columns, Range inner, float* to) const;
  void pack_panel(const Operands& operands, Range columns, Range inner, float* to) const;
  [[nodiscard]] matrix::Ahead ahead_of(const Operands& operands, Range columns, Range inner, std::int64_t n) const;
  void multiply(const Operands& operands, const Part& block, Range inner, bool first_rows, float* memory) const;

  Extents extents_;
  const matrix::Tiles& tiles_;
  std::int64_t depth_ = 1;      ///< of a block
  std::int64_t width_ = 1;      ///< columns of a block, whole panels
  std::int64_t copy_rows_ = 1;  ///< rows of a that are copied at a time, so that they do not alias
  std::int64_t copy_row_ = 0;
  std::int64_t packed_floats_ = 0;
};

}  // namespace orthant::kernels::dense
