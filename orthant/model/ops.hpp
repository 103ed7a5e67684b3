#pragma once

#include "orthant/tensor/window.hpp"

#include <variant>

namespace orthant::model {

/// How a layer's weights start. Fans are those of PyTorch (inputs x taps, outputs x taps).
enum class Init {
  torch,           ///< uniform in +-1/sqrt(fan_in), weights and bias: PyTorch's default
  glorot_uniform,  ///< uniform in +-sqrt(6 / (fan_in + fan_out))
  he_normal,       ///< normal with variance 2 / fan_out
};

/// The network's source: c, d, h, w of one sample. n is Graph::mini_batch.
struct Input {
  bool operator==(const Input&) const = default;
};

struct Conv {
  std::int64_t filters = 1;
  tensor::Window window{};
  std::int64_t groups = 1;
  bool bias = true;
  Init init = Init::torch;
  double bias_value = 0;  ///< start of the bias where init is not torch
  bool operator==(const Conv&) const = default;
};

/// The adjoint of Conv with the same window: dst is what that convolution's src would be.
struct ConvTranspose {
  std::int64_t filters = 1;
  tensor::Window window{};
  tensor::Extent3 output_padding = tensor::cube(0);
  std::int64_t groups = 1;
  bool bias = true;
  Init init = Init::torch;
  double bias_value = 0;
  bool operator==(const ConvTranspose&) const = default;
};

enum class PoolKind { max, average };

struct Pool {
  PoolKind kind = PoolKind::max;
  tensor::Window window{};
  bool count_include_pad = true;  ///< average: padded cells count in the divisor
  bool operator==(const Pool&) const = default;
};

/// Mean over d, h, w; dst has d = h = w = 1.
struct GlobalAveragePool {
  bool operator==(const GlobalAveragePool&) const = default;
};

/// src must have d = h = w = 1 (Flatten before it).
struct Dense {
  std::int64_t features = 1;
  bool bias = true;
  Init init = Init::torch;
  double bias_value = 0;
  bool operator==(const Dense&) const = default;
};

/// Per channel over n, d, h, w. running = (1 - momentum) * running + momentum * batch, as PyTorch.
struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool operator==(const BatchNorm&) const = default;
};

enum class ActivationKind { identity, relu, leaky_relu, tanh, sigmoid };

struct Activation {
  ActivationKind kind = ActivationKind::identity;
  double slope = 0.01;  ///< leaky_relu, for negative values
  bool operator==(const Activation&) const = default;
};

/// Over channels.
struct Softmax {
  bool operator==(const Softmax&) const = default;
};

struct Scale {
  double factor = 1;
  bool operator==(const Scale&) const = default;
};

/// Zeroes with probability `rate` and scales the rest by 1 / (1 - rate); identity in evaluation.
struct Dropout {
  double rate = 0.5;
  bool operator==(const Dropout&) const = default;
};

/// Sum of two or more tensors of one shape.
struct Add {
  bool operator==(const Add&) const = default;
};

/// Channels of the sources one after the other.
struct Concat {
  bool operator==(const Concat&) const = default;
};

/// c, d, h, w of each sample to one vector, in PyTorch's order (c slowest).
struct Flatten {
  bool operator==(const Flatten&) const = default;
};

/// The closed set of ops. A new one breaks the build until its shape rule, lowering and kernel exist.
using Op = std::variant<Input, Conv, ConvTranspose, Pool, GlobalAveragePool, Dense, BatchNorm, Activation, Softmax,
                        Scale, Dropout, Add, Concat, Flatten>;

/// "conv", "batch_norm", ...: the word of YAML files, tables and messages.
const char* name_of(const Op& op);
const char* name_of(ActivationKind kind);

}  // namespace orthant::model
