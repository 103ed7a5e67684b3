#pragma once

#include "orthant/kernels/primitive.hpp"

namespace orthant::kernels {

/// The arguments of a convolution as a cross-correlation: dst = src * weights + bias. The forward pass is one, and
/// backward_data is one of diff_dst with the mirrored weights, whose result is diff_src.
struct CorrelationArguments {
  const float* src = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< null without
  float* dst = nullptr;
};

inline CorrelationArguments correlation_arguments(model::Pass pass, std::span<void* const> arguments) {
  const auto read = [&](std::size_t position) { return static_cast<const float*>(arguments[position]); };
  const auto written = [&](std::size_t position) { return static_cast<float*>(arguments[position]); };
  if (pass == model::Pass::forward) {
    using namespace at::conv_forward;
    return {.src = read(src), .weights = read(weights), .bias = read(bias), .dst = written(dst)};
  }
  using namespace at::conv_backward_data;
  return {.src = read(diff_dst), .weights = read(weights), .dst = written(diff_src)};
}

}  // namespace orthant::kernels
