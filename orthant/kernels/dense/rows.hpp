#pragma once

#include "orthant/kernels/dense/shape.hpp"
#include "orthant/model/ops.hpp"

#include <algorithm>

namespace orthant::kernels::dense {

/// Inputs of a sample that are multiplied at a time, so that those of all samples stay in the first-level cache.
inline std::int64_t dot_chunk(std::int64_t samples) {
  return std::max<std::int64_t>(4096 / std::max<std::int64_t>(samples, 1) / 64, 4) * 64;
}
/// Floats for the copies of these, a cache line apart.
inline std::int64_t dot_floats(std::int64_t samples) { return samples * (dot_chunk(samples) + 16); }

/// dst = src * weights for a range of outputs, of few samples: the weights are read once, in place.
struct ForwardCall {
  Shape shape;
  Range outputs;
  const float* src = nullptr;
  const float* weights = nullptr;
  float* dst = nullptr;
  float* copy = nullptr;  ///< dot_floats(samples)
};

/// dst = activation(dst + bias) for some samples (rows) and outputs (columns); bias may be null.
struct FinishCall {
  Shape shape;
  Part part;
  model::Activation activation;
  const float* bias = nullptr;
  float* dst = nullptr;
};

/// diff_src = weights' * diff_dst for a range of inputs, of few samples: the weights are read once, in place.
struct BackwardDataCall {
  Shape shape;
  Range inputs;
  const float* diff_dst = nullptr;
  const float* weights = nullptr;
  float* diff_src = nullptr;
};

void run(const ForwardCall& call);
void run(const BackwardDataCall& call);
void run(const FinishCall& call);

}  // namespace orthant::kernels::dense
