#pragma once

#include "orthant/model/ops.hpp"

#include <cstdint>

namespace orthant::kernels::dense {

/// A fully connected layer in memory: rows of `inputs` and of `outputs` floats per sample, weights [outputs][inputs].
struct Shape {
  std::int64_t samples = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t src_step = 0;  ///< from sample to sample
  std::int64_t dst_step = 0;
};

/// A half-open range of inputs or outputs: what one thread does.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// dst = activation(src * weights + bias) for a range of outputs; bias may be null.
struct ForwardCall {
  Shape shape;
  Range outputs;
  model::Activation activation;
  const float* src = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;
  float* dst = nullptr;
};

/// diff_src = weights' * diff_dst for a range of inputs.
struct BackwardDataCall {
  Shape shape;
  Range inputs;
  const float* diff_dst = nullptr;
  const float* weights = nullptr;
  float* diff_src = nullptr;
};

/// diff_weights = diff_dst * src' and diff_bias (may be null) for a range of outputs, or += with `accumulate`.
struct BackwardWeightsCall {
  Shape shape;
  Range outputs;
  bool accumulate = false;
  const float* src = nullptr;
  const float* diff_dst = nullptr;
  float* diff_weights = nullptr;
  float* diff_bias = nullptr;
};

void run(const ForwardCall& call);
void run(const BackwardDataCall& call);
void run(const BackwardWeightsCall& call);

}  // namespace orthant::kernels::dense
