#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/tensor/box.hpp"
#include "orthant/tensor/layout.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace orthant::model {

/// What one rank computes in one step, with local geometry and memory order: what kernels are made from
/// and what the oracle prices. Pure values. The comment of each task lists its arguments, in order; arguments.hpp has
/// them as values, with their access, layouts and types.
/// `Layout`s carry an offset into the argument's buffer. Parameters and their gradients are dense and
/// in our order: convolution weights are [groups][taps][I/groups][O/groups] ("gdhwio"), dense weights [O][I].
/// Extents are those of the layouts: dst may end before what src allows, and cells of src that no tap reaches have a
/// gradient of zero. Windows count from pad_lo; pad_hi says nothing here.
enum class Pass { forward, backward_data, backward_weights };
inline constexpr std::array all_passes{Pass::forward, Pass::backward_data, Pass::backward_weights};
const char* name_of(Pass pass);

/// How a convolution is computed. With `automatic` a rule decides; a task whose algorithm cannot do it is refused.
enum class Algorithm { automatic, winograd, matrix, onednn, direct, winograd_large, winograd_staged, onednn_winograd };
inline constexpr std::array named_algorithms{
    Algorithm::winograd,       Algorithm::matrix,          Algorithm::onednn,         Algorithm::direct,
    Algorithm::winograd_large, Algorithm::winograd_staged, Algorithm::onednn_winograd};
const char* name_of(Algorithm algorithm);
/// The algorithm of this name, or nothing.
std::optional<Algorithm> algorithm_named(const std::string& name);

/// How far an algorithm's results may lie from those computed in double: `exact` at most twice as far as those of
/// oneDNN's direct convolution, and not at all where all sums are small whole numbers; `fast` at most ten times as far.
enum class ErrorClass { exact, fast };
const char* name_of(ErrorClass errors);
ErrorClass error_class(Algorithm algorithm);

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
  bool accumulate = false;  ///< backward_weights: diff_weights and diff_bias are added to what they hold
  tensor::Layout src{}, dst{};
  Algorithm algorithm = Algorithm::automatic;
  /// If not zero, the weights argument is what a PrepareWeightsTask wrote, and has so many bytes.
  std::int64_t prepared_bytes = 0;
};

/// Brings weights into the form in which the kernel of `conv` reads them (Winograd's transform, oneDNN's reorder), once
/// for all calls on the same weights. `conv` is a forward or backward_data task with prepared_bytes as
/// kernels::prepared_weights gives them.      weights, prepared
struct PrepareWeightsTask {
  ConvTask conv;
};

/// dst[n][o] = activation(sum_i src[n][i] * weights[o][i] + bias[o]). Layouts have d = h = w = 1.
/// Arguments as ConvTask.
struct DenseTask {
  Pass pass = Pass::forward;
  bool bias = false;
  Activation activation{};
  bool accumulate = false;
  tensor::Layout src{}, dst{};
};

/// Pooling; global average pooling has a window of the whole extent.
///   forward:       src, dst, argmax (uint8 or uint16 per dst item, see argmax_bytes; null for average)
///   backward_data: diff_dst, argmax, y, diff_src
/// backward: diff_src = pool'(diff_dst) * activation'(y), where y = activation(...) was pooled; y may be null when
/// activation is identity and may be the same memory as diff_src (then it has the layout of src).
/// With `accumulate` pool'(diff_dst) is added to what diff_src holds (activation must be identity).
/// An average divides by all taps with count_include_pad; without it by the taps inside the global tensor, in which
/// cell 0 of src is cell `first_src` of `global_src` cells. Zeros say that src is the whole.
struct PoolTask {
  Pass pass = Pass::forward;
  PoolKind kind = PoolKind::max;
  tensor::Window window;
  bool count_include_pad = true;
  Activation activation{};  ///< backward only
  bool accumulate = false;
  tensor::Layout src{}, dst{};
  tensor::Extent3 global_src = tensor::cube(0), first_src = tensor::cube(0);
};

/// Bytes of one argmax index: 1 up to 256 taps, 2 up to 65536. Throws Error beyond.
std::int64_t argmax_bytes(const tensor::Window& window);

/// Statistics per sample and group of channels, instead of per channel over all samples. Then sums and saved have, for
/// every sample, two numbers per group, in the order in which they otherwise have two per channel.
struct SampleGroups {
  std::int64_t groups = 0;    ///< that sums and saved have; 0: statistics are per channel
  std::int64_t channels = 1;  ///< per group
  std::int64_t first = 0;     ///< where the first channel of x lies, counted from the first group's
  bool operator==(const SampleGroups&) const = default;
};

/// This rank's sums for normalisation, per channel (or sample and group), in double.
///   forward:       x, sums (2 x c: sum of x, sum of x^2)
///   backward_data: diff_y, diff_y2 (null or a second gradient to add), x, y (null unless the activation needs it),
///                  gamma, beta, saved, sums (2 x c: sum of dz, sum of dz * xhat),
///                  diff_gamma, diff_beta (this rank's share, from the same sums), diff_residual (null without)
///                  With groups these are the sums of gamma * dz, and gamma and beta with their gradients may be null.
/// dz = (diff_y + diff_y2) * activation'(y). Where y is null the derivative comes from x:
/// z = gamma * xhat + beta, with xhat = (x - mean) / std. diff_residual receives dz and may be the same memory as
/// diff_y, diff_y2 or y, item by item. With `accumulate` diff_gamma and diff_beta are added to what they hold.
struct NormSumsTask {
  Pass pass = Pass::forward;
  SampleGroups groups{};
  Activation activation{};
  bool accumulate = false;
  tensor::Layout x{};
  tensor::Layout y = tensor::as_other;  ///< backward; as x unless given, the others as y
  tensor::Layout diff_y = tensor::as_other, diff_y2 = tensor::as_other, diff_residual = tensor::as_other;
};

/// Batch normalisation, fused with a residual sum and an activation: y = activation(norm(x) + residual).
/// `sums` is what the NormSumsTasks of all ranks add up to.
///   forward, training:   x, gamma, beta, running_mean, running_var, sums, saved (2 x c: mean, 1/std),
///                        residual (null without), y
///   forward, evaluation: the same; sums and saved are not touched, running statistics are only read
///   backward (as backward_data): diff_y, diff_y2 (null or a second gradient to add), x,
///                        y (null unless the activation needs it), gamma, beta, saved, sums, diff_x
/// backward: diff_x is the gradient of x from dz, as NormSumsTask defines it, and may be the same memory as diff_y,
/// diff_y2, x or y item by item. Where dz is at hand (diff_residual), it serves as diff_y with the identity.
/// With groups there are no running statistics, and training is true; gamma and beta may be null.
struct NormTask {
  Pass pass = Pass::forward;
  SampleGroups groups{};
  bool training = true;
  double epsilon = 1e-5;
  double momentum = 0.1;
  Activation activation{};
  bool residual = false;              ///< forward only
  std::int64_t statistics_count = 0;  ///< items per channel the statistics cover (all ranks)
  tensor::Layout x{};
  tensor::Layout y = tensor::as_other;  ///< as x unless given, diff_x too, the others as y
  tensor::Layout diff_y = tensor::as_other, diff_y2 = tensor::as_other, diff_x = tensor::as_other,
                 residual_layout = tensor::as_other;
};

/// Every pixel normalised over its channels.
///   forward:       x, gamma, beta (null without), saved (mean and 1/std of every pixel), y
///   backward_data: diff_y, x, gamma (null without), saved, diff_x, diff_gamma, diff_beta (null without)
/// diff_x may be the same memory as diff_y or x, item by item.
struct PixelNormTask {
  Pass pass = Pass::forward;
  bool affine = true;
  double epsilon = 1e-5;
  bool accumulate = false;                   ///< backward: diff_gamma and diff_beta are added to what they hold
  tensor::Layout x{}, y{};                   ///< diff_y is laid out as y
  tensor::Layout diff_x = tensor::as_other;  ///< backward; as x if not given
};

/// Activation over all items.
///   forward:       src, dst            dst = activation(src + bias)     (may be in place); bias is null or per channel
///                  arguments: src, bias, dst
///   backward_data: diff_dst, diff_dst2 (null or a second gradient), y, diff_src
///                  diff_src = (diff_dst + diff_dst2) * activation'(y); y is what the derivative is taken from: dst, or
///                  src where derivative_reads_src()
struct ActivationTask {
  Pass pass = Pass::forward;
  Activation activation{};
  tensor::Layout src{}, dst{};                                     ///< diff_dst is laid out as dst, diff_src as src
  tensor::Layout second = tensor::as_other, y = tensor::as_other;  ///< of diff_dst2 and y; as dst if not given
};

/// dst = src where that is positive, else weight * src; one weight per channel, or one for all.
///   forward:       src, weights, dst
///   backward_data: diff_dst, src, weights, diff_src, diff_weights
struct PReluTask {
  Pass pass = Pass::forward;
  bool shared = false;
  bool accumulate = false;                     ///< backward: diff_weights is added to what it holds
  tensor::Layout src{}, dst{};                 ///< diff_dst is laid out as dst
  tensor::Layout diff_src = tensor::as_other;  ///< backward; as src if not given
};

/// dst = a * b + bias. Where b has one item along a dim, that counts for all of dst.
///   a, b, bias (null, or one item per channel), dst (may be in place over a)
struct ProductTask {
  tensor::Layout a{}, b{}, dst{};
};

/// dst = sum of a * b over the dims along which dst has one item, or += with `accumulate`.      a, b, dst
struct ProductSumsTask {
  bool accumulate = false;
  tensor::Layout a{}, b{}, dst{};
};

/// Every cell of dst is a weighted sum of cells of src, of the same sample and channel; the weights are products of one
/// per spatial dim. Resizing, slicing, padding and their adjoints.      src, dst
struct RemapTask {
  /// What the cells of dst read along a dim: entries [begin[i], begin[i + 1]) are of cell i.
  struct Axis {
    std::vector<std::int32_t> begin{0};
    std::vector<std::int32_t> cell{};  ///< of src
    std::vector<float> weight{};
    bool operator==(const Axis&) const = default;
  };
  std::array<Axis, 3> axes{};  ///< d, h, w
  tensor::Layout src{}, dst{};
};

/// A range of dst cells along a dim, of a range of src cells; `src` and `dst` are the extents of the whole tensors.
RemapTask::Axis axis_of(const tensor::AxisRule& rule, tensor::Range dst_cells, tensor::Range src_cells,
                        std::int64_t src, std::int64_t dst);
/// What src cells get back from dst cells, for so many src cells.
RemapTask::Axis adjoint(const RemapTask::Axis& axis, std::int64_t src_cells);

/// Softmax over channels.
///   forward:       src, dst
///   backward_data: diff_dst, y, diff_src
struct SoftmaxTask {
  Pass pass = Pass::forward;
  tensor::Layout src{}, dst{};
  tensor::Layout diff_dst = tensor::as_other;  ///< backward; as dst if not given
};

/// The largest item of every channel of every sample, and where it is: three numbers side by side in w, the item and
/// its place in the whole tensor, place = second + third * peak_places, with w fastest. The first of equal items
/// counts; NaN is larger than all.
///   forward:       src, dst
///   backward_data: diff_dst (of which only the first numbers count), dst, diff_src
/// Cell 0 of src is cell `first_src` of `global_src` cells.
struct PeaksTask {
  Pass pass = Pass::forward;
  tensor::Extent3 global_src = tensor::cube(1), first_src = tensor::cube(0);
  tensor::Layout src{}, dst{};                 ///< diff_src is laid out as src
  tensor::Layout diff_dst = tensor::as_other;  ///< backward; as dst if not given
};
inline constexpr std::int64_t peak_numbers = 3, peak_places = std::int64_t{1} << 23;

/// The largest of the peaks of several parts, which are cells of src; each is peak_numbers cells in w.
///   forward:       src, dst (the item alone)
///   backward_data: diff_dst, src, diff_src (zero but for the largest)
struct HighestPeakTask {
  Pass pass = Pass::forward;
  tensor::Layout src{}, dst{};                 ///< diff_dst is laid out as dst
  tensor::Layout diff_src = tensor::as_other;  ///< backward; as src if not given
};

/// dst = factor * src + offset, or dst += factor * src with `accumulate`. Layouts may permute: flatten, concat and
/// split are copies.
///   src, dst (may be in place)
struct CopyTask {
  double factor = 1;
  double offset = 0;  ///< 0 with accumulate
  bool accumulate = false;
  tensor::Layout src{}, dst{};
};

/// Copies of boxes, one after the other: dst = src or dst += src for each piece. What is packed for messages, and what
/// is unpacked of them.
///   src, dst
struct CopyPiecesTask {
  struct Piece {
    tensor::Layout src{}, dst{};
  };
  bool accumulate = false;
  std::vector<Piece> pieces{};
};

/// dst = 0.      dst
struct FillTask {
  tensor::Layout dst{};
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

/// diff_bias[c] = sum over pixels of diff_dst, or += with `accumulate`.      diff_dst, diff_bias
struct BiasGradientTask {
  bool accumulate = false;
  tensor::Layout dst;
};

/// This rank's sums for the loss, term by term, in double: loss_sum_count() of them.
///   output, target, sums
/// mean_squared_error: of squared differences; mean_absolute_error: of absolute ones; cross_entropy: of -log p[label];
/// soft_dice, with p the probabilities and t the labels as ones: per class of p t, then of p, then of t.
/// target: values laid out as `output` (dense channels-last), or int32 labels, one per pixel.
/// Execution throws Error where a label is no class.
struct LossSumsTask {
  Loss loss;
  tensor::Layout output;
};

/// How many sums a LossSumsTask writes.
std::int64_t loss_sum_count(const Loss& loss, std::int64_t classes);

/// The loss and its gradient. `sums` is what the LossSumsTasks of all ranks add up to.
///   output, target, sums, diff_output (null in evaluation), loss (one double per term, then their weighted sum)
/// diff_output is laid out as output, and may be the same memory. A rank without pixels has n = 0.
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

/// One optimizer step on `count` items, as PyTorch defines it. The gradient is the sum of this rank's and of those of
/// others, in order: first those that have arrived, then those that others keep.
///   weights, gradient, state0 (or null), state1 (or null), arrived (parts x count; null without), then each kept one
struct UpdateTask {
  Optimizer optimizer;
  std::int64_t count = 0;
  int arrived = 0, kept = 0;
};

using Task = std::variant<ConvTask, PrepareWeightsTask, DenseTask, PoolTask, NormSumsTask, NormTask, PixelNormTask,
                          ActivationTask, PReluTask, ProductTask, ProductSumsTask, RemapTask, PeaksTask,
                          HighestPeakTask, SoftmaxTask, CopyTask, CopyPiecesTask, FillTask, AddTask, DropoutTask,
                          BiasGradientTask, LossSumsTask, LossTask, UpdateTask>;

/// Floating-point operations of a task (a multiply-add is two): convolutions and dense layers exactly, the rest
/// as zero.
std::int64_t flops(const Task& task);

/// Bytes that go between memory and a kernel that touches every item of its arguments once: what steps that are bound
/// by memory cost. What is added to goes both ways; arguments that may be null count.
std::int64_t bytes_moved(const Task& task);

}  // namespace orthant::model
