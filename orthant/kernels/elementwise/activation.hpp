#pragma once

#include "orthant/kernels/lines.hpp"
#include "orthant/model/ops.hpp"

namespace orthant::kernels::elementwise {

/// Throws Error if the activation's derivative cannot be computed from its value.
void check_invertible(const model::Activation& activation);

/// dst = activation(src + bias) on a line; bias is null or has one item per channel of the line.
struct ActivationForward {
  model::ActivationKind kind;
  float slope;
  const float* src;
  const float* bias;
  float* dst;
  std::int64_t src_stride, dst_stride;
};

/// diff_src = (diff_dst + diff_dst2) * activation'(y) on a line; diff_dst2 may be null, y too for the identity.
struct ActivationBackward {
  model::ActivationKind kind;
  float slope;
  const float* diff_dst;
  const float* diff_dst2;
  const float* y;
  float* diff_src;
  std::int64_t dst_stride, second_stride, y_stride, src_stride;
};

}  // namespace orthant::kernels::elementwise
