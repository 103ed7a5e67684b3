#pragma once

#include "orthant/base/error.hpp"

#include <cstdint>
#include <vector>

namespace orthant::kernels::remap {

/// A row of src with its weight in a row of dst.
struct Term {
  const float* src;
  float weight;
};

/// Cells of dst side by side: copies of as many cells of src from `src` on, or sums.
struct Run {
  std::int64_t dst, src, count;
  bool is_copy;
};

/// Makes the cells of some runs of a row. Entries [begin[i], begin[i + 1]) are those of cell i.
struct RowCall {
  const Run* runs;
  std::int64_t run_count;
  const std::int32_t* begin;
  const std::int32_t* cell;
  const float* weight;
  const float* src;
  float* dst;
  std::int64_t src_step, dst_step, channels;
};

}  // namespace orthant::kernels::remap
