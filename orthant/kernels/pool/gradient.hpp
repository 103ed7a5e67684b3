#pragma once

#include "orthant/kernels/pool/pool.hpp"

namespace orthant::kernels::pool {

/// Makes one row of diff_src from the rows of diff_dst whose windows reach into it.
struct PoolGradientRow {
  model::ActivationKind kind;
  float slope;
  const std::int32_t* readers_begin;  ///< in w, as Readers has them
  const std::int32_t* readers_output;
  const std::int32_t* readers_tap;
  const std::int32_t*
      reader_pairs;              ///< average: where in `sums` the two readers of each pixel are; null if some have more
  const float* const* rows;      ///< of diff_dst
  const float* row_factors;      ///< average: one per row
  const void* const* argmax;     ///< max: the same rows of argmax
  const std::int32_t* row_taps;  ///< max: the index of the first tap by which each row's windows read this one
  bool one_reader;               ///< no pixel has more than one reader in w
  std::int64_t row_count;
  std::int64_t channels, src_pixels, dst_pixels;
  std::int64_t dst_stride, src_stride;  ///< between pixels
  std::int64_t argmax_bytes;
  const float* pixel_factors;  ///< average: one per pixel of diff_dst
  bool one_factor;             ///< average: all row factors are 1 and all pixel factors the same
  float* sums;                 ///< average: scratch of dst_pixels x channels items, then `channels` zeros
  const float* y;              ///< null for the identity
  float* diff_src;
  bool accumulate;
};

/// Serial and vectorised.
void max_pool_gradient_row(const PoolGradientRow& row);
void average_pool_gradient_row(const PoolGradientRow& row);

}  // namespace orthant::kernels::pool
