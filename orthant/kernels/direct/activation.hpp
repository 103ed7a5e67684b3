#pragma once

#include "orthant/model/ops.hpp"

namespace orthant::kernels::direct {

/// values = activation(values) for `channels` floats per pixel, in place.
struct ActivateCall {
  model::Activation activation;
  float* values = nullptr;
  std::int64_t step = 0;  ///< from pixel to pixel
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
};

/// For what the register tiles do not do themselves: leaky ReLU, tanh, sigmoid.
void activate(const ActivateCall& call);

}  // namespace orthant::kernels::direct
