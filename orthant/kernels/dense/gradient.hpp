#pragma once

#include "orthant/kernels/dense/shape.hpp"
#include "orthant/kernels/matrix/tiles.hpp"

namespace orthant::kernels::dense {

/// diff_weights[o][i] = sum over samples of diff_dst[n][o] * src[n][i], or += with `accumulate`. Every thread packs
/// blocks of its inputs, and all outputs for each of them; so a row of weights is written from left to right.
class Gradient {
 public:
  struct Operands {
    const float* src = nullptr;
    const float* diff_dst = nullptr;
    float* diff_weights = nullptr;
  };

  Gradient(const Shape& shape, bool accumulate, int threads);

  [[nodiscard]] std::int64_t thread_floats() const { return src_floats_ + diff_floats_; }
  /// `memory` has thread_floats() floats.
  void run(const Operands& operands, int thread, int team, float* memory) const;

 private:
  /// What is packed at a time.
  struct Block {
    Range inputs, outputs, samples;
  };
  struct Tile {
    std::int64_t output = 0, input = 0;
    Range samples;  ///< of the block
  };

  void run_block(const Operands& operands, Range samples, Range inputs, Range outputs, float* memory) const;
  void multiply_row_by_row(const Operands& operands, const Block& block, const float* memory) const;
  void multiply_in_cache(const Operands& operands, const Block& block, Range samples, const float* memory) const;
  void multiply_tile(const Operands& operands, const Block& block, const Tile& tile, const float* memory) const;

  Shape shape_;
  bool accumulate_;
  bool stream_ = false;  ///< write around the cache: every item is written once
  const matrix::Tiles& tiles_;
  std::int64_t depth_ = 1;      ///< samples of a block
  std::int64_t width_ = 1;      ///< inputs of a block, whole panels
  std::int64_t height_ = 1;     ///< outputs that are packed at a time, whole row panels
  std::int64_t row_panel_ = 1;  ///< outputs of a register tile
  std::int64_t src_floats_ = 0, diff_floats_ = 0;
};

}  // namespace orthant::kernels::dense
