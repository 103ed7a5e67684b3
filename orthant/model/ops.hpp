#pragma once

#include "orthant/tensor/axis_rule.hpp"
#include "orthant/tensor/window.hpp"

#include <array>
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

/// Mean over d, h, w; dst has d = h = w = 1. It is a sum in parts: every rank adds up the cells that it has.
struct GlobalAveragePool {
  bool operator==(const GlobalAveragePool&) const = default;
};

/// Maximum over d, h, w; dst has d = h = w = 1. The gradient goes to the first maximum (d slowest), as PyTorch's does.
/// Every rank looks at the cells that it has.
struct GlobalMaxPool {
  bool operator==(const GlobalMaxPool&) const = default;
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

enum class SampleNormKind { group, instance, layer };

/// Mean and variance per sample: over space and a group of channels (group), over space (instance), or per cell over
/// channels (layer). Then weight and bias per channel where it is affine.
struct SampleNorm {
  SampleNormKind kind = SampleNormKind::group;
  std::int64_t groups = 1;  ///< group only
  double epsilon = 1e-5;
  bool affine = true;
  bool operator==(const SampleNorm&) const = default;
};

enum class ActivationKind {
  identity,
  relu,
  leaky_relu,
  tanh,
  sigmoid,
  relu6,
  hard_sigmoid,
  elu,
  silu,
  gelu,
  hard_swish
};

struct Activation {
  ActivationKind kind = ActivationKind::identity;
  double slope = 0.01;  ///< leaky_relu: of negative values; elu: its alpha
  bool operator==(const Activation&) const = default;
};

/// True if the derivative is taken from src: dst does not tell it.
bool derivative_reads_src(ActivationKind kind);

/// dst = src where that is positive, else weight * src, with a weight per channel or one for all.
struct PRelu {
  bool shared = false;
  double start = 0.25;
  bool operator==(const PRelu&) const = default;
};

/// dst = weight * src + bias, per channel. What is not trainable is a constant that comes with the weights.
struct Affine {
  bool bias = true;
  bool trainable = true;
  double weight_value = 1, bias_value = 0;  ///< how they start
  bool operator==(const Affine&) const = default;
};

/// Over channels.
struct Softmax {
  bool operator==(const Softmax&) const = default;
};

/// dst = factor * src + offset.
struct Scale {
  double factor = 1;
  double offset = 0;
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

/// Product of two tensors. Of the second all cells or all channels may be one: it counts for all of the first.
struct Multiply {
  bool operator==(const Multiply&) const = default;
};

enum class ResizeMode { nearest, linear };

/// More or fewer cells, as PyTorch's interpolate. linear: with half pixels, or with corners on corners.
struct Resize {
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;
  std::array<double, 3> factor{};          ///< dst cells per src cell, d h w; 0 where `size` is given
  tensor::Extent3 size = tensor::cube(0);  ///< of dst; 0 where `factor` is given
  bool operator==(const Resize&) const = default;
};

/// A box of every sample: channels and cells from `first` on, `step` apart in space.
struct Slice {
  std::int64_t first_channel = 0, channels = 0;  ///< 0: all that follow
  tensor::Extent3 first = tensor::cube(0);
  tensor::Extent3 size = tensor::cube(0);  ///< of dst; 0: as many as there are
  tensor::Extent3 step = tensor::cube(1);
  bool operator==(const Slice&) const = default;
};

enum class PadMode { zeros, reflect, edge };

/// Cells around the source: zeros, those inside mirrored at the last one, or the last one again and again.
struct Pad {
  PadMode mode = PadMode::zeros;
  tensor::Extent3 lo = tensor::cube(0), hi = tensor::cube(0);
  bool operator==(const Pad&) const = default;
};

/// Channels of `groups` groups in turn: channel j of group i becomes channel i + j * groups.
struct ChannelShuffle {
  std::int64_t groups = 1;
  bool operator==(const ChannelShuffle&) const = default;
};

/// Every cell becomes a block of `factor` cells, which its channels fill, or, `to_channels`, every block a cell. The
/// channels of one block stand together, w fastest: PyTorch's pixel_shuffle and pixel_unshuffle.
struct PixelShuffle {
  tensor::Extent3 factor = tensor::cube(1);
  bool to_channels = false;
  bool operator==(const PixelShuffle&) const = default;
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
using Op = std::variant<Input, Conv, ConvTranspose, Pool, GlobalAveragePool, GlobalMaxPool, Dense, BatchNorm,
                        SampleNorm, Activation, PRelu, Affine, Softmax, Scale, Dropout, Add, Multiply, Resize, Slice,
                        Pad, ChannelShuffle, PixelShuffle, Concat, Flatten>;

/// "conv", "batch_norm", ...: the word of YAML files, tables and messages.
const char* name_of(const Op& op);
const char* name_of(ActivationKind kind);

}  // namespace orthant::model
