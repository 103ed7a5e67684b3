#pragma once

#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/winograd/tiling.hpp"

#include <algorithm>
#include <string>

namespace orthant::kernels::winograd {

/// Output channels per group that are computed together, in all tiles: whole vectors.
struct Outputs {
  std::int64_t first = 0, count = 0;
};

/// The weights of a forward or backward_data task at Winograd's points. One block of outputs comes after the other,
/// each as [group][point][panel][in][lanes of the panel].
class TransformedWeights {
 public:
  TransformedWeights(const model::ConvTask& task, Kind kind, const Tiling& tiling);

  [[nodiscard]] std::int64_t lanes() const { return lanes_; }
  [[nodiscard]] std::int64_t panel() const { return panel_; }            ///< outputs that are side by side
  [[nodiscard]] std::int64_t padded_out() const { return padded_out_; }  ///< all outputs, in whole vectors
  [[nodiscard]] std::int64_t most_in() const { return most_in_; }        ///< input channels at a time
  [[nodiscard]] std::int64_t most_out() const { return most_out_; }      ///< of a block; whole panels

  /// The block that begins at output `first`.
  [[nodiscard]] Outputs block_at(std::int64_t first) const;
  [[nodiscard]] std::int64_t block_offset(const Outputs& block) const { return row_floats() * block.first; }
  /// From the beginning of a block to its panel from output o on.
  [[nodiscard]] std::int64_t panel_offset(std::int64_t group, int point, const Outputs& block, std::int64_t o) const {
    return ((group * points_ + point) * block.count + o) * in_;
  }

  [[nodiscard]] std::int64_t floats() const { return row_floats() * padded_out_; }
  [[nodiscard]] std::int64_t block_floats() const { return row_floats() * std::min(most_out_, padded_out_); }
  /// Floats of scratch memory that each thread needs for transform().
  [[nodiscard]] std::int64_t thread_floats() const;
  /// All that the floats depend on apart from the weights.
  [[nodiscard]] std::string form() const;

  /// Writes one thread's share of a block to `to`. `scratch` is the thread's own.
  void transform(const float* weights, const Outputs& block, float* to, float* scratch, int thread, int team) const;

 private:
  [[nodiscard]] std::int64_t row_floats() const { return groups_ * points_ * in_; }  ///< of one output
  void transpose(const float* weights, std::int64_t channels, std::int64_t columns, float* transposed) const;

  Tiling tiling_;
  bool mirrored_;                   ///< backward_data: taps are mirrored, and the weights lie as [out][in]
  std::int64_t groups_, in_, out_;  ///< channels per group
  int points_;
  std::int64_t lanes_, panel_, padded_out_, most_in_, most_out_;
};

}  // namespace orthant::kernels::winograd
