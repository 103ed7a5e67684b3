#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/tensor/box.hpp"
#include "orthant/tensor/layout.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace orthant::model {

/// What one rank computes in one step, with local geometry and memory order: what kernels are made from
/// and what the oracle prices. Pure values. The comment of each task lists its arguments, in order.
/// `Layout`s carry an offset into the argument's buffer. Parameters and their gradients are dense and
/// in our order: convolution weights are [groups][taps][I/groups][O/groups] ("gdhwio"), dense weights [O][I].
enum class Pass { forward, backward_data, backward_weights };

/// Convolution. src and dst always mean those of the *convolution*: a transposed convolution is
/// the backward_data pass of its adjoint, with dst as its input.
///   forward:          src, weights, bias (null without), dst        dst = activation(src * weights + bias)
///   backward_data:    diff_dst, weights, diff_src
///   backward_weights: src, diff_dst, diff_weights, diff_bias (null without)
struct ConvTask {
  Pass pass = Pass::forward;
  tensor::Window window;
  std::int64_t groups = 1;
  bool bias = false;
  Activation activation{};  ///< forward only
  tensor::Layout src{}, dst{};
};

/// dst[n][o] = activation(sum_i src[n][i] * weights[o][i] + bias[o]). Layouts have d = h = w = 1.
/// Arguments as ConvTask.
struct DenseTask {
  Pass pass = Pass::forward;
  bool bias = false;
  Activation activation{};
  tensor::Layout src{}, dst{};
};

/// Pooling; global average pooling has a window of the whole extent.
///   forward:       src, dst, argmax (uint8 or uint16 per dst item, see argmax_bytes; null for average)
///   backward_data: diff_dst, argmax, y, diff_src
/// backward: diff_src = pool'(diff_dst) * activation'(y), where y = activation(...) was pooled; y may be null when
/// activation is identity and may be the same memory as diff_src (then it has the layout of src).
/// With `accumulate` pool'(diff_dst) is added to what diff_src holds (activation must be identity).
struct PoolTask {
  Pass pass = Pass::forward;
  PoolKind kind = PoolKind::max;
  tensor::Window window;
  bool count_include_pad = true;
  Activation activation{};  ///< backward only
  bool accumulate = false;
  tensor::Layout src{}, dst{};
};

/// Bytes of one argmax index: 1 up to 256 taps, 2 up to 65536. Throws Error beyond.
std::int64_t argmax_bytes(const tensor::Window& window);

/// Batch normalisation, fused with a residual sum and an activation: y = activation(norm(x) + residual).
///   forward, training:   x, gamma, beta, running_mean, running_var, saved (2 x c: mean, 1/std),
///                        residual (null without), y
///   forward, evaluation: the same; saved is not touched, running statistics are only read
///   backward (as backward_data): diff_y, diff_y2 (null or a second gradient to add), x,
///                        y (null unless `residual` or activation needs it),
///                        gamma, beta, saved, diff_gamma, diff_beta, diff_x, diff_residual (null without)
/// backward: dz = (diff_y + diff_y2) * activation'(y). diff_residual receives dz, diff_x the gradient of x; either may
/// be the same memory as diff_y, diff_y2, x or y item by item, but not as each other.
/// Where y is null the activation's derivative comes from x: z = gamma * (x - mean) / std + beta.
struct NormTask {
  Pass pass = Pass::forward;
  bool training = true;
  double epsilon = 1e-5;
  double momentum = 0.1;
  Activation activation{};
  bool residual = false;
  std::int64_t statistics_count = 0;  ///< items per channel the statistics cover (all ranks)
  tensor::Layout x{}, y{};            ///< diff_x and residual are laid out as x and y say, unless given
  tensor::Layout diff_y{}, diff_y2{}, diff_x{}, diff_residual{}, residual_layout{};
};

/// Activation over all items.
///   forward:       src, dst            dst = activation(src + bias)     (may be in place); bias is null or per channel
///                  arguments: src, bias, dst
///   backward_data: diff_dst, diff_dst2 (null or a second gradient), y, diff_src
///                  diff_src = (diff_dst + diff_dst2) * activation'(y)
struct ActivationTask {
  Pass pass = Pass::forward;
  Activation activation{};
  tensor::Layout src{}, dst{}, second{};  ///< y and diff_dst are laid out as dst, diff_src as src, diff_dst2 as second
};

/// Softmax over channels.
///   forward:       src, dst
///   backward_data: diff_dst, y, diff_src
struct SoftmaxTask {
  Pass pass = Pass::forward;
  tensor::Layout src{}, dst{};
};

/// dst = factor * src, or dst += factor * src with `accumulate`. Layouts may permute: flatten, concat and split
/// are copies.
///   src, dst
struct CopyTask {
  double factor = 1;
  bool accumulate = false;
  tensor::Layout src{}, dst{};
};

/// dst = a + b.      a, b, dst (may be in place)
struct AddTask {
  tensor::Layout a{}, b{}, dst{};
};

/// dst = src * mask / (1 - rate); forward and backward alike. The mask is a function of seed, step, layer and
/// the position in the global tensor (Context has seed and step).      src, dst (may be in place)
struct DropoutTask {
  double rate = 0.5;
  int layer = 0;         ///< the node's index
  tensor::Shape global;  ///< the whole tensor
  tensor::Box box;       ///< the part held here
  tensor::Layout src{}, dst{};
};

/// diff_bias[c] = sum over pixels of diff_dst.      diff_dst, diff_bias
struct BiasGradientTask {
  tensor::Layout dst;
};

/// The loss and its gradient at once.
///   output, target, diff_output (null in evaluation), loss (one double per term, then their weighted sum)
/// target: values laid out as `output` (dense channels-last), or int32 labels, one per pixel.
/// diff_output is laid out as output, and may be the same memory.
struct LossTask {
  Loss loss;
  tensor::Shape global;  ///< of the output: means divide by it
  tensor::Layout output;
};

enum class OptimizerKind { sgd, adam, adamw };

/// Hyperparameters that do not change from step to step; the learning rate comes with the Context.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0;  ///< sgd
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam, adamw
};

/// Numbers kept per parameter: 0 for plain SGD, 1 with momentum, 2 for Adam.
int state_count(const Optimizer& optimizer);

/// One optimizer step on `count` items, as PyTorch defines it.
///   weights, gradient, state0 (or null), state1 (or null)
struct UpdateTask {
  Optimizer optimizer;
  std::int64_t count = 0;
};

using Task = std::variant<ConvTask, DenseTask, PoolTask, NormTask, ActivationTask, SoftmaxTask, CopyTask, AddTask,
                          DropoutTask, BiasGradientTask, LossTask, UpdateTask>;

/// Floating-point operations of a task (a multiply-add is two): convolutions and dense layers exactly, the rest
/// as zero.
std::int64_t flops(const Task& task);

}  // namespace orthant::model
