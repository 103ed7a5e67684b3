#pragma once

#include <cstdint>
#include <span>

namespace orthant::kernels::elementwise {

/// A gradient that is the sum of several parts, added in this order.
struct GradientParts {
  const float* own;
  const float* arrived;  ///< of others, `stride` items apart
  const float* end_of_arrived;
  std::int64_t stride;
  std::span<void* const> kept;  ///< floats, by others
};

/// torch.optim.SGD on `count` items. `momentum` is null without.
struct SgdStep {
  float rate, decay, momentum_factor;
  bool nesterov;
  float* weights;
  GradientParts gradient;
  float* momentum;
};

/// torch.optim.Adam and AdamW on `count` items; bias corrections are in `step_size` and `root_factor`.
struct AdamStep {
  float keep;   ///< what a weight is multiplied by first: 1 - rate * decay for AdamW, else 1
  float decay;  ///< share of the weight added to the gradient: Adam
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float step_size;    ///< rate / (1 - beta1^step)
  float root_factor;  ///< 1 / sqrt(1 - beta2^step)
  float epsilon;
  float* weights;
  GradientParts gradient;
  float* first;
  float* second;
};

}  // namespace orthant::kernels::elementwise
