#pragma once

#include "orthant/kernels/primitive.hpp"

#include <vector>

namespace orthant::kernels::pool {

/// A half-open range of taps.
struct TapRange {
  std::int64_t begin = 0, end = 0;
};

/// One spatial dim of a pooling: output o reads the inputs o * stride - pad + tap * dilation that exist.
struct PoolDim {
  std::int64_t src = 1, dst = 1, size = 1, stride = 1, dilation = 1, pad = 0;
  std::int64_t global = 1, first = 0;  ///< the whole tensor has `global` cells; src begins at its cell `first`

  [[nodiscard]] std::int64_t first_input(std::int64_t o) const { return o * stride - pad; }
  [[nodiscard]] bool is_inside(std::int64_t o) const {
    return first_input(o) >= 0 && first_input(o) + (size - 1) * dilation < src;
  }
  [[nodiscard]] TapRange taps_inside(std::int64_t o) const {
    return is_inside(o) ? TapRange{0, size} : clipped_taps(o);
  }
  [[nodiscard]] TapRange clipped_taps(std::int64_t o) const;
  /// The taps inside the global tensor.
  [[nodiscard]] std::int64_t count_global(std::int64_t o) const;
};

PoolDim pool_dim(const model::PoolTask& task, tensor::Dim dim);

/// Which outputs read input s of a dim, and by which tap: items [begin[s], begin[s + 1]).
struct Readers {
  std::vector<std::int32_t> begin, output, tap;

  explicit Readers(const PoolDim& dim);
};

std::unique_ptr<Primitive> make_pool_forward(const model::PoolTask& task, int threads);
std::unique_ptr<Primitive> make_average_pool_forward(const model::PoolTask& task, int threads);
std::unique_ptr<Primitive> make_global_pool_forward(const model::PoolTask& task, int threads);
std::unique_ptr<Primitive> make_pool_backward(const model::PoolTask& task, int threads);

/// True if all windows have the same divisor.
bool has_one_divisor(const model::PoolTask& task);
/// True if the task is an average whose only window holds all of src.
bool is_global_average(const model::PoolTask& task);

/// Makes one row of dst from the rows of src that its windows reach into.
struct PoolRow {
  PoolDim w;
  const float* const* rows = nullptr;      ///< the first pixel of each
  const std::int32_t* row_taps = nullptr;  ///< max: the index of each row's first tap in the window
  std::int64_t row_count = 0;
  std::int64_t channels = 0;
  std::int64_t src_stride = 0, dst_stride = 0;  ///< between pixels
  float* dst = nullptr;
  void* argmax = nullptr;  ///< max: one index per item, or null
  std::int64_t argmax_bytes = 0;
  float divisor = 1;           ///< average: of windows that lie inside in w
  std::int64_t next_row = 0;   ///< items from a row of src to the one that the next row of dst reads in its place
  bool counts_padding = true;  ///< average: divisor holds for every window; else it is per tap in w
};

/// Serial and vectorised.
void max_pool_row(const PoolRow& row);
void average_pool_row(const PoolRow& row);

}  // namespace orthant::kernels::pool
