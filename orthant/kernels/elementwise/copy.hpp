#pragma once

#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels::elementwise {

/// A copy between layouts whose channels are contiguous on one side only, or on none.
std::unique_ptr<Primitive> make_permuting_copy(const model::CopyTask& task, int threads);

/// dst = factor * src + offset, or dst += factor * src, on a line of pixels.
struct CopyLine {
  float factor, offset;
  bool accumulate;
  const float* src;
  float* dst;
  std::int64_t src_stride, dst_stride;
};

/// dst = a + b on a line of pixels.
struct AddLine {
  const float* a;
  const float* b;
  float* dst;
  std::int64_t a_stride, b_stride, dst_stride;
};

}  // namespace orthant::kernels::elementwise
