#pragma once

#include <cstdint>

namespace orthant::kernels::elementwise {

/// dst = softmax(src) over the channels of each of `pixels` rows; in place allowed.
struct SoftmaxForward {
  const float* src;
  float* dst;
  std::int64_t src_stride, dst_stride;
};

/// diff_src = y * (diff_dst - sum over channels of diff_dst * y); in place allowed.
struct SoftmaxBackward {
  const float* diff_dst;
  const float* y;
  float* diff_src;
  std::int64_t dst_stride, y_stride, src_stride;
};

/// Vectorised; serial.
void softmax_rows(const SoftmaxForward& args, std::int64_t pixels, std::int64_t channels);
void softmax_gradient_rows(const SoftmaxBackward& args, std::int64_t pixels, std::int64_t channels);

}  // namespace orthant::kernels::elementwise
