#include "orthant/kernels/conv.hpp"
#include "orthant/base/format.hpp"
#include "orthant/kernels/instruction_set.hpp"
#include "orthant/kernels/onednn/call.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace orthant::kernels::onednn {
namespace {

using dnnl::memory;
using model::ConvTask;
using model::Pass;
using tensor::Dim;

/// A convolution as oneDNN describes it: with two spatial dims if the depth takes no part, and dilation counted from 0.
struct Problem {
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
  memory::desc src, dst, bias;
  memory::desc asked_src, asked_dst;  ///< those, or with Winograd what the implementation chooses
  memory::desc any_weights;           ///< the implementation chooses
  memory::desc weights;               ///< our order
  memory::dims strides, dilates, pad_lo, pad_hi;
};

memory::desc float_memory(const memory::dims& dims, const memory::dims& strides) {
  return {dims, memory::data_type::f32, strides};
}

/// True if every depth plane is an image of its own.
bool is_planar(const ConvTask& task) {
  const tensor::Window& window = task.window;
  return window.size.d == 1 && window.stride.d == 1 && window.pad_lo.d == 0 && task.src.extents.d == task.dst.extents.d;
}

/// Cells that the last window reaches beyond src; negative where it ends before.
std::int64_t excess(const ConvTask& task, Dim dim) {
  return (task.dst.extents[dim] - 1) * task.window.stride[dim] + tensor::reach(task.window, dim) -
         task.src.extents[dim] - task.window.pad_lo[dim];
}

/// oneDNN requires dst to have all the cells that src allows.
bool uses_all_of_src(const ConvTask& task) {
  return std::all_of(tensor::spatial_dims.begin(), tensor::spatial_dims.end(),
                     [&](Dim dim) { return excess(task, dim) + task.window.stride[dim] > 0; });
}

/// Dense channels-last; planes count as samples where `planar`.
memory::desc activations(const tensor::Shape& shape, bool planar) {
  if (planar) {
    return {{shape.n * shape.d, shape.c, shape.h, shape.w}, memory::data_type::f32, memory::format_tag::nhwc};
  }
  return {{shape.n, shape.c, shape.d, shape.h, shape.w}, memory::data_type::f32, memory::format_tag::ndhwc};
}

/// [groups][taps][I/groups][O/groups], with oneDNN's dims (g) o i (d) h w.
void describe_weights(const ConvTask& task, bool planar, Problem& problem) {
  const std::int64_t filters = task.dst.extents.c / task.groups;
  const std::int64_t channels = task.src.extents.c / task.groups;
  memory::dims dims{filters, channels};
  memory::dims strides{1, filters};
  std::int64_t stride = filters * channels * tensor::taps(task.window);
  if (task.groups > 1) {
    dims.insert(dims.begin(), task.groups);
    strides.insert(strides.begin(), stride);
  }
  for (const Dim dim : tensor::spatial_dims) {
    stride /= task.window.size[dim];
    if (planar && dim == Dim::d) continue;
    dims.push_back(task.window.size[dim]);
    strides.push_back(stride);
  }
  problem.weights = float_memory(dims, strides);
  problem.any_weights = {dims, memory::data_type::f32, memory::format_tag::any};
}

memory::desc in_any_order(const memory::desc& memory) {
  return {memory.dims(), memory::data_type::f32, memory::format_tag::any};
}

Problem describe(const ConvTask& task, dnnl::algorithm algorithm) {
  const bool planar = is_planar(task);
  Problem problem;
  problem.algorithm = algorithm;
  problem.src = activations(task.src.extents, planar);
  problem.dst = activations(task.dst.extents, planar);
  const bool direct = algorithm == dnnl::algorithm::convolution_direct;
  problem.asked_src = direct ? problem.src : in_any_order(problem.src);
  problem.asked_dst = direct ? problem.dst : in_any_order(problem.dst);
  if (task.bias) problem.bias = {{task.dst.extents.c}, memory::data_type::f32, memory::format_tag::a};
  describe_weights(task, planar, problem);
  for (const Dim dim : tensor::spatial_dims) {
    if (planar && dim == Dim::d) continue;
    problem.strides.push_back(task.window.stride[dim]);
    problem.dilates.push_back(task.window.dilation[dim] - 1);
    problem.pad_lo.push_back(task.window.pad_lo[dim]);
    problem.pad_hi.push_back(std::max<std::int64_t>(excess(task, dim), 0));
  }
  return problem;
}

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

Forward::primitive_desc describe_forward(const Problem& p, const dnnl::primitive_attr& attr,
                                         const dnnl::engine& engine) {
  const Forward::desc operation(dnnl::prop_kind::forward_training, p.algorithm, p.asked_src, p.any_weights, p.bias,
                                p.asked_dst, p.strides, p.dilates, p.pad_lo, p.pad_hi);
  return {operation, attr, engine};
}

BackwardData::primitive_desc describe_backward_data(const Problem& p, const dnnl::engine& engine) {
  const BackwardData::desc operation(p.algorithm, p.asked_src, p.any_weights, p.asked_dst, p.strides, p.dilates,
                                     p.pad_lo, p.pad_hi);
  const dnnl::primitive_attr attr = attributes({});
  return {operation, attr, engine, describe_forward(p, attr, engine)};
}

BackwardWeights::primitive_desc describe_backward_weights(const Problem& p, const dnnl::engine& engine) {
  const BackwardWeights::desc operation(p.algorithm, p.asked_src, p.any_weights, p.bias, p.asked_dst, p.strides,
                                        p.dilates, p.pad_lo, p.pad_hi);
  const dnnl::primitive_attr attr = attributes({});
  return {operation, attr, engine, describe_forward(p, attr, engine)};
}

/// A text that differs for different memory orders.
std::string order_text(const memory::desc& memory) {
  const dnnl_memory_desc_t& data = memory.data;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  std::string text;
  if (data.format_kind != dnnl_blocked) return fmt::format(" kind {}", static_cast<int>(data.format_kind));
  for (int i = 0; i < data.ndims; ++i)
    text += fmt::format(" {}/{} stride {}", data.dims[i], data.padded_dims[i], blocking.strides[i]);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    text += fmt::format(" block {} of dim {}", blocking.inner_blks[i], blocking.inner_idxs[i]);
  return text + fmt::format(" extra {}", data.extra.flags);
}

/// The primitive wants the weights in an order of its own. Unless they are prepared, they are copied to (or from)
/// scratch, behind the scratchpad. So are tensors where it wants these in another order.
class OnednnConv final : public Primitive {
 public:
  OnednnConv(const ConvTask& task, dnnl::algorithm algorithm, int threads)
      : threads_(threads), prepared_(task.prepared_bytes > 0) {
    const Problem problem = describe(task, algorithm);
    switch (task.pass) {
      case Pass::forward: create_forward(problem, task); break;
      case Pass::backward_data: create_backward_data(problem, task); break;
      case Pass::backward_weights: create_backward_weights(problem, task); break;
    }
  }

  /// False if there is no fast implementation; then the primitive must not be executed.
  [[nodiscard]] bool created() const { return !name_.empty(); }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return scratchpad_bytes_ + copy_bytes_ + (prepared_ ? 0 : weights_.bytes);
  }
  /// In the order that the primitive wants.
  [[nodiscard]] const PreparedWeights& weights() const { return weights_; }

  void prepare(void* ours, void* theirs) const {
    const TeamScope team(threads_);
    reorder_.run(stream_, std::array{ours, theirs});
  }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* scratch) override {
    const TeamScope team(threads_);
    std::array<void*, 5> data{};
    for (std::size_t i = 0; i < arguments.size(); ++i) data[i] = static_cast<float*>(arguments[i]) + offsets_[i];
    data[arguments.size()] = scratch;
    if (copies_.empty()) return execute_main(arguments, scratch, data);

    const std::array<void*, 5> given = data;
    std::byte* at = static_cast<std::byte*>(scratch) + scratchpad_bytes_ + (prepared_ ? 0 : weights_.bytes);
    for (const TensorCopy& copy : copies_) {
      data[copy.argument] = at + copy.offset;
      if (!copy.is_written) copy.reorder.run(stream_, std::array{given[copy.argument], data[copy.argument]});
    }
    execute_main(arguments, scratch, data);
    for (const TensorCopy& copy : copies_)
      if (copy.is_written) copy.reorder.run(stream_, std::array{data[copy.argument], given[copy.argument]});
  }

 private:
  /// A tensor in the order that the primitive wants.
  struct TensorCopy {
    std::size_t argument = 0;
    bool is_written = false;
    std::int64_t offset = 0;
    Call reorder{};
  };

  void execute_main(std::span<void* const> arguments, void* scratch, std::array<void*, 5>& data) {
    if (prepared_ || weights_.bytes == 0) return main_.run(stream_, data);

    void* ours = arguments[weights_at_];
    void* theirs = static_cast<std::byte*>(scratch) + scratchpad_bytes_;
    data[weights_at_] = theirs;
    if (!weights_are_written_) reorder_.run(stream_, std::array{ours, theirs});
    main_.run(stream_, data);
    if (weights_are_written_) reorder_.run(stream_, std::array{theirs, ours});
  }

  void reorder_tensor(std::size_t argument, const memory::desc& ours, const memory::desc& theirs, bool is_written) {
    if (ours == theirs) return;
    copies_.push_back({argument, is_written, copy_bytes_,
                       is_written ? make_reorder(engine_, theirs, ours) : make_reorder(engine_, ours, theirs)});
    copy_bytes_ += padded_bytes(theirs.get_size());
  }

  void create_forward(const Problem& problem, const ConvTask& task) {
    const auto chosen = describe_forward(problem, attributes(task.activation), engine_);
    if (!adopt(chosen)) return;
    offsets_[at::conv_forward::src] = task.src.offset;
    offsets_[at::conv_forward::dst] = task.dst.offset;
    weights_at_ = at::conv_forward::weights;
    reorder_tensor(at::conv_forward::src, problem.src, chosen.src_desc(), false);
    reorder_tensor(at::conv_forward::dst, problem.dst, chosen.dst_desc(), true);
    reorder_weights(problem.weights, chosen.weights_desc());
    main_ = {engine_,
             Forward(chosen),
             {{DNNL_ARG_SRC, chosen.src_desc()},
              {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
              {DNNL_ARG_BIAS, chosen.bias_desc()},
              {DNNL_ARG_DST, chosen.dst_desc()},
              {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}}};
  }

  void create_backward_data(const Problem& problem, const ConvTask& task) {
    const auto chosen = describe_backward_data(problem, engine_);
    if (!adopt(chosen)) return;
    offsets_[at::conv_backward_data::diff_dst] = task.dst.offset;
    offsets_[at::conv_backward_data::diff_src] = task.src.offset;
    weights_at_ = at::conv_backward_data::weights;
    reorder_tensor(at::conv_backward_data::diff_dst, problem.dst, chosen.diff_dst_desc(), false);
    reorder_tensor(at::conv_backward_data::diff_src, problem.src, chosen.diff_src_desc(), true);
    reorder_weights(problem.weights, chosen.weights_desc());
    main_ = {engine_,
             BackwardData(chosen),
             {{DNNL_ARG_DIFF_DST, chosen.diff_dst_desc()},
              {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
              {DNNL_ARG_DIFF_SRC, chosen.diff_src_desc()},
              {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}}};
  }

  void create_backward_weights(const Problem& problem, const ConvTask& task) {
    const auto chosen = describe_backward_weights(problem, engine_);
    if (!adopt(chosen)) return;
    offsets_[at::conv_backward_weights::src] = task.src.offset;
    offsets_[at::conv_backward_weights::diff_dst] = task.dst.offset;
    weights_at_ = at::conv_backward_weights::diff_weights;
    reorder_tensor(at::conv_backward_weights::src, problem.src, chosen.src_desc(), false);
    reorder_tensor(at::conv_backward_weights::diff_dst, problem.dst, chosen.diff_dst_desc(), false);
    weights_are_written_ = true;
    reorder_weights(problem.weights, chosen.diff_weights_desc());
    main_ = {engine_,
             BackwardWeights(chosen),
             {{DNNL_ARG_SRC, chosen.src_desc()},
              {DNNL_ARG_DIFF_DST, chosen.diff_dst_desc()},
              {DNNL_ARG_DIFF_WEIGHTS, chosen.diff_weights_desc()},
              {DNNL_ARG_DIFF_BIAS, chosen.diff_bias_desc()},
              {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}}};
  }

  template <class Description>
  bool adopt(const Description& description) {
    const std::string name = description.impl_info_str();
    if (!is_fast(name)) return false;
    name_ = name;
    scratchpad_bytes_ = padded_bytes(description.scratchpad_desc().get_size());
    return true;
  }

  void reorder_weights(const memory::desc& ours, const memory::desc& theirs) {
    if (ours == theirs) return;
    reorder_ = weights_are_written_ ? make_reorder(engine_, theirs, ours) : make_reorder(engine_, ours, theirs);
    weights_ = {.bytes = padded_bytes(theirs.get_size()), .form = "onednn" + order_text(theirs)};
  }

  int threads_;
  bool prepared_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Call main_, reorder_;
  std::array<std::int64_t, 4> offsets_{};
  std::size_t weights_at_ = 0;
  bool weights_are_written_ = false;
  std::string name_;
  std::int64_t scratchpad_bytes_ = 0, copy_bytes_ = 0;
  PreparedWeights weights_;
  std::vector<TensorCopy> copies_;
};

/// Runs the reorder of a convolution's weights only.
class PrepareWeights final : public Primitive {
 public:
  explicit PrepareWeights(std::unique_ptr<OnednnConv> conv) : conv_(std::move(conv)) {}

  [[nodiscard]] std::string name() const override { return "reorder:" + conv_->name(); }

  void execute(const Context& /*context*/, std::span<void* const> arguments, void* /*scratch*/) override {
    conv_->prepare(arguments[at::prepare_weights::weights], arguments[at::prepare_weights::prepared]);
  }

 private:
  std::unique_ptr<OnednnConv> conv_;
};

/// True for tasks with which oneDNN 2.6.3 writes past the end of its scratchpad.
bool overruns_scratchpad(const ConvTask& task) {
  return task.pass == Pass::backward_weights && tensor::taps(task.window) == 1 &&
         task.window.stride != tensor::cube(1) && task.src.extents.c / task.groups < 16;
}

/// oneDNN counts samples, and the padded cells of a sample, in 32 bits, and divides by the truncated counts. A
/// convolution has no more outputs than padded inputs, so no other count can overflow.
bool overflows_counters(const ConvTask& task) {
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  const tensor::Window& window = task.window;
  double cells = 1;
  for (const Dim dim : tensor::spatial_dims) {
    cells *= static_cast<double>(task.src.extents[dim]) + static_cast<double>(window.pad_lo[dim]) +
             static_cast<double>(window.pad_hi[dim]);
  }
  const auto planes = static_cast<double>(is_planar(task) ? task.src.extents.d : 1);
  return cells > most || static_cast<double>(task.src.extents.n) * planes > most;
}

/// Null where oneDNN has no fast implementation, or must not be asked for one.
std::unique_ptr<OnednnConv> create(const ConvTask& task, int threads,
                                   dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct) {
  limit_instructions();
  if (!tensor::is_dense(task.src) || !tensor::is_dense(task.dst) || !uses_all_of_src(task)) return nullptr;
  if (task.accumulate || overruns_scratchpad(task) || overflows_counters(task)) return nullptr;
  const TeamScope team(threads);
  try {
    auto conv = std::make_unique<OnednnConv>(task, algorithm, threads);
    if (conv->created()) return conv;
  } catch (const dnnl::error&) {
    // oneDNN has no implementation at all, which is the same to us as having no fast one.
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Primitive> make_conv(const ConvTask& task, int threads) { return create(task, threads); }

std::unique_ptr<Primitive> make_winograd(const ConvTask& task, int threads) {
  if (task.prepared_bytes > 0 || !is_planar(task)) return nullptr;
  // oneDNN 2.6 divides by zero where there is nothing to compute, and its backward-data is wrong where more is padded
  // on one side than on the other.
  if (volume(task.src.extents) == 0 || volume(task.dst.extents) == 0) return nullptr;
  for (const tensor::Dim dim : {tensor::Dim::h, tensor::Dim::w}) {
    if (task.window.pad_lo[dim] != excess(task, dim)) return nullptr;
  }
  return create(task, threads, dnnl::algorithm::convolution_winograd);
}

PreparedWeights prepared_weights(const ConvTask& task, int threads) { return create(task, threads)->weights(); }

std::unique_ptr<Primitive> make_prepare_weights(const ConvTask& task, int threads) {
  return std::make_unique<PrepareWeights>(create(task, threads));
}

}  // namespace orthant::kernels::onednn
