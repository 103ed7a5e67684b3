#include "orthant/model/argument_positions.hpp"
#include "orthant/model/pieces.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/schedule/ops/ops.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::schedule::ops {
namespace {

using model::Pass;
using Role = model::Parameter::Role;

/// True if this rank sums over some of the channels only, so that the sums of several ranks are added.
bool sums_in_parts(const Lowering& lowering, const Unit& unit) { return lowering.planned(unit.main).channel_parts > 1; }

/// Groups that lie on this rank.
std::int64_t local_groups(const Lowering& lowering, const Unit& unit, std::int64_t groups) {
  if (groups == 1) return 1;
  const tensor::Box& box = lowering.share(unit.main).computed;
  return (box.hi.c - box.lo.c) / (lowering.node(unit.main).shape.c / groups);
}

using Arguments = std::vector<int>;

/// Where forward and backward_data of a layer have their weights.
constexpr std::size_t weights_at = model::at::conv_forward::weights;
static_assert(weights_at == model::at::conv_backward_data::weights);

std::string step_name(const Lowering& lowering, const Unit& unit, const char* what) {
  return lowering.node(unit.main).name + "." + what;
}

/// A task with its arguments.
template <class Task>
struct Call {
  Task task;
  Arguments arguments;
};

/// Where the kernel wants weights in another form, they are prepared once for all calls.
void prepare_weights(Lowering& lowering, const Unit& unit, const char* what, model::ConvTask& task,
                     Arguments& arguments) {
  Emitter& emitter = lowering.emitter();
  const PreparedWeights wanted = emitter.prepared_weights(step_name(lowering, unit, what), task);
  if (wanted.bytes == 0) return;
  task.prepared_bytes = wanted.bytes;
  int& prepared = lowering.prepared_weights(unit.main, task.pass, wanted.form);
  if (prepared < 0) {
    prepared = emitter.add_buffer(step_name(lowering, unit, what) + ".weights", wanted.bytes);
    emitter.emit(unit.main, "prepare_weights", model::PrepareWeightsTask{task}, {arguments[weights_at], prepared});
  }
  arguments[weights_at] = prepared;
}

/// Gives a convolution the algorithm that the plan says, or divides it as the plan says. Emits the steps that prepare
/// its weights where the plan says so.
std::vector<Call<model::ConvTask>> calls_of(Lowering& lowering, const Unit& unit, const char* what,
                                            model::ConvTask task, const Arguments& arguments) {
  const plan::KernelChoice& choice = lowering.planned(unit.main).kernels[task.pass];
  task.algorithm = choice.algorithm;
  std::vector<Call<model::ConvTask>> calls;
  for (const model::ConvTask& part : model::divided(task, choice.pieces)) {
    calls.push_back({part, arguments});
    if (choice.prepare_weights && task.pass != Pass::backward_weights)
      prepare_weights(lowering, unit, what, calls.back().task, calls.back().arguments);
  }
  return calls;
}

std::vector<Call<model::DenseTask>> calls_of(Lowering& /*lowering*/, const Unit& /*unit*/, const char* /*what*/,
                                             const model::DenseTask& task, const Arguments& arguments) {
  return {{task, arguments}};
}

/// Pieces are numbered: "conv1.forward.1".
template <class Task>
void emit_calls(Lowering& lowering, const Unit& unit, const std::string& what, std::vector<Call<Task>> calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = calls.size() == 1 ? what : what + "." + std::to_string(i + 1);
    lowering.emitter().emit(unit.main, name, calls[i].task, std::move(calls[i].arguments));
  }
}

template <class Task>
void emit_layer(Lowering& lowering, const Unit& unit, const char* what, const Task& task, const Arguments& arguments) {
  emit_calls(lowering, unit, what, calls_of(lowering, unit, what, task, arguments));
}

/// Where the layer writes: dst, or a tensor of sums over some of the channels.
Value layer_dst(Lowering& lowering, const Unit& unit, const NodeValue& y) {
  if (!sums_in_parts(lowering, unit)) return y.own;
  return lowering.emitter().add_tensor(lowering.node(unit.main).name + ".partial", lowering.share(unit.main).computed);
}

void add_partial_sums(Lowering& lowering, const Unit& unit, const Value& partial, const NodeValue& y) {
  Returning sum = lowering.exchanges().give_back(lowering.node(unit.main).name + ".sum", Kind::gather,
                                                 as_tensor(partial), lowering.partial_sums_route(unit.main));
  lowering.exchanges().finish(std::move(sum.pending));
  if (!y.own.empty()) lowering.emitter().copy(unit.main, "keep", sum.own, y.own);
}

void bias_and_activation(Lowering& lowering, const Unit& unit, const Value& y, bool bias) {
  const model::Activation activation = lowering.activation(unit);
  if (y.empty() || (!bias && activation.kind == model::ActivationKind::identity)) return;
  const model::ActivationTask task{.activation = activation, .src = y.layout, .dst = y.layout};
  lowering.emitter().emit(unit.main, "bias_activation", task,
                          {y.buffer, lowering.parameters().value_of(unit.main, Role::bias), y.buffer});
}

/// `make(x, y)` is the task between two boxes but for bias, activation and layouts.
template <class Make>
NodeValue layer_forward(Lowering& lowering, const Unit& unit, bool bias, Make make) {
  Fetching fetching = lowering.begin_fetch(unit);
  const Tensor x = lowering.source(unit) = fetching.tensor;
  const NodeValue y = lowering.add_dst(unit);
  const Value out = layer_dst(lowering, unit, y);
  const bool parts = sums_in_parts(lowering, unit);
  if (out.empty()) {
    lowering.exchanges().finish(std::move(fetching.pending));
  } else {
    auto task = make(x.all.box, out.box);
    task.bias = bias && !parts;
    task.activation = parts ? model::Activation{} : lowering.activation(unit);
    task.src = x.all.layout;
    task.dst = out.layout;
    const Parameters& parameters = lowering.parameters();
    const Arguments arguments{x.all.buffer, parameters.value_of(unit.main, Role::weight),
                              parts ? -1 : parameters.value_of(unit.main, Role::bias), out.buffer};
    auto calls = calls_of(lowering, unit, "forward", task, arguments);  // weights are prepared while the halo travels
    lowering.exchanges().finish(std::move(fetching.pending));
    emit_calls(lowering, unit, "forward", std::move(calls));
  }
  if (parts) {
    add_partial_sums(lowering, unit, out, y);
    bias_and_activation(lowering, unit, y.own, bias);
  }
  return y;
}

/// The gradient of all that this rank computed: that of others' filters, too, where it sums over some of the channels.
Value layer_diff(Lowering& lowering, const Unit& unit, const Value& diff) {
  if (!sums_in_parts(lowering, unit)) return diff;
  return lowering.exchanges()
      .collect(lowering.node(unit.main).name + ".diff", Kind::gather, diff, lowering.partial_sums_route(unit.main))
      .all;
}

void bias_backward(Lowering& lowering, const Unit& unit, const Value& diff) {
  if (diff.empty()) return;  // zero_gradients() of the weights covers the bias
  lowering.emitter().emit(unit.main, "backward_bias",
                          model::BiasGradientTask{.accumulate = lowering.accumulates(), .dst = diff.layout},
                          {diff.buffer, lowering.parameters().gradient_of(unit.main, Role::bias)});
}

void zero_gradients(Lowering& lowering, const Unit& unit) {
  if (!lowering.accumulates()) lowering.parameters().zero_gradients(unit.main);
}

/// True if the backward of what made `index` begins with sums over ranks that have other samples. (Where space is cut,
/// a convolution's own messages travel under its work already, and memory is what counts.)
bool begins_with_sums(const Lowering& lowering, int index) {
  const int main = lowering.analysis().producer(index).main;
  return model::traits_of(lowering.node(main).op).batch_statistics && lowering.planned(main).grid.n > 1 &&
         plan::statistics_group(lowering.analysis().plan(), lowering.geometry().graph, main, lowering.rank())
                 .ranks.size() > 1;
}

/// True if no tensor of the network is more than four times as large.
bool is_large(const Lowering& lowering, int index) {
  const std::vector<model::Node>& nodes = lowering.geometry().graph.nodes;
  return std::all_of(nodes.begin(), nodes.end(), [&](const model::Node& other) {
    return tensor::volume(other.shape) / 4 <= tensor::volume(lowering.node(index).shape);
  });
}

/// Emits the gradients of the source (`data`) and of the weights in the better order. Where the source's goes to other
/// ranks, it is computed first and travels while the weights' is computed; where ranks have to add up statistics next,
/// the weights' is computed meanwhile. Otherwise the weights' comes first, so that the memory of the source is free for
/// its gradient. The same is done for the largest tensors: two of them would decide how much memory the step takes.
template <class Data, class Weights>
void backward_both(Lowering& lowering, const Unit& unit, Data data, Weights weights) {
  if (!lowering.needs_gradient(unit.srcs[0])) return weights();
  if (tensor::is_local(lowering.analysis().reading(lowering.geometry(), unit, 0))) {
    const bool defers = begins_with_sums(lowering, unit.srcs[0]);
    if (!defers) weights();
    const Tensor gradient = data();
    if (defers) lowering.emitter().defer(weights);
    return lowering.pass_back(unit, 0, gradient);
  }
  const bool weights_first = is_large(lowering, unit.srcs[0]);
  if (weights_first) weights();
  Returning back = lowering.begin_return(unit, 0, data());
  if (!weights_first) weights();
  lowering.exchanges().finish(std::move(back.pending));
  lowering.pass_to(unit.srcs[0], back.own);
}

/// `make(x, y)` as in layer_forward().
template <class Make>
void layer_backward(Lowering& lowering, const Unit& unit, bool bias, Make make) {
  const Value own = lowering.before_activation(unit);
  const Value diff = layer_diff(lowering, unit, own);
  const Tensor& x = lowering.source(unit);
  const bool parts = sums_in_parts(lowering, unit);
  const Parameters& parameters = lowering.parameters();
  const auto weights = [&] {
    if (parts && bias) bias_backward(lowering, unit, own);
    if (diff.empty()) return zero_gradients(lowering, unit);
    auto task = make(x.all.box, diff.box);
    task.pass = Pass::backward_weights;
    task.bias = bias && !parts;
    task.accumulate = lowering.accumulates();
    task.src = x.all.layout;
    task.dst = diff.layout;
    emit_layer(lowering, unit, "backward_weights", task,
               {x.all.buffer, diff.buffer, parameters.gradient_of(unit.main, Role::weight),
                parts ? -1 : parameters.gradient_of(unit.main, Role::bias)});
  };
  const auto data = [&] {
    Tensor diff_x = lowering.add_diff_src(unit);
    if (diff.empty()) return diff_x;
    auto task = make(x.all.box, diff.box);
    task.pass = Pass::backward_data;
    task.src = diff_x.all.layout;
    task.dst = diff.layout;
    emit_layer(lowering, unit, "backward_data", task,
               {diff.buffer, parameters.value_of(unit.main, Role::weight), diff_x.all.buffer});
    return diff_x;
  };
  backward_both(lowering, unit, data, weights);
}

auto conv_maker(const Lowering& lowering, const Unit& unit, const model::Conv& op) {
  return [&lowering, &unit, &op](const tensor::Box& src, const tensor::Box& dst) {
    return model::ConvTask{.window = tensor::local_window(op.window, src, dst),
                           .groups = local_groups(lowering, unit, op.groups)};
  };
}

model::DenseTask make_dense(const tensor::Box& /*src*/, const tensor::Box& /*dst*/) { return {}; }

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Conv& op) {
  return layer_forward(lowering, unit, op.bias, conv_maker(lowering, unit, op));
}

void backward(Lowering& lowering, const Unit& unit, const model::Conv& op) {
  layer_backward(lowering, unit, op.bias, conv_maker(lowering, unit, op));
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Dense& op) {
  return layer_forward(lowering, unit, op.bias, make_dense);
}

void backward(Lowering& lowering, const Unit& unit, const model::Dense& op) {
  layer_backward(lowering, unit, op.bias, make_dense);
}

/// Forward is the gradient of the convolution that goes the other way, with respect to its source.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::ConvTranspose& op) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  const Value out = layer_dst(lowering, unit, y);
  if (!out.empty()) {
    const model::ConvTask task{.pass = Pass::backward_data,
                               .window = tensor::local_window(op.window, out.box, x.all.box),
                               .groups = local_groups(lowering, unit, op.groups),
                               .src = out.layout,
                               .dst = x.all.layout};
    emit_layer(lowering, unit, "forward", task,
               {x.all.buffer, lowering.parameters().value_of(unit.main, Role::weight), out.buffer});
  }
  if (sums_in_parts(lowering, unit)) add_partial_sums(lowering, unit, out, y);
  bias_and_activation(lowering, unit, y.own, op.bias);
  return y;
}

/// The gradient of the source is that convolution, and the weights' is its own with src and dst exchanged.
void backward(Lowering& lowering, const Unit& unit, const model::ConvTranspose& op) {
  const Value own = lowering.before_activation(unit);
  const Value diff = layer_diff(lowering, unit, own);
  const Tensor& x = lowering.source(unit);
  const Parameters& parameters = lowering.parameters();
  model::ConvTask task{
      .window = op.window, .groups = local_groups(lowering, unit, op.groups), .src = diff.layout, .dst = x.all.layout};
  if (!diff.empty()) task.window = tensor::local_window(op.window, diff.box, x.all.box);

  const auto weights = [&] {
    if (op.bias) bias_backward(lowering, unit, own);
    if (diff.empty()) return zero_gradients(lowering, unit);
    model::ConvTask last = task;
    last.pass = Pass::backward_weights;
    last.accumulate = lowering.accumulates();
    emit_layer(lowering, unit, "backward_weights", last,
               {diff.buffer, x.all.buffer, parameters.gradient_of(unit.main, Role::weight), -1});
  };
  const auto data = [&] {
    Tensor diff_x = lowering.add_diff_src(unit);
    if (!diff.empty()) {
      model::ConvTask first = task;
      first.pass = Pass::forward;
      first.dst = diff_x.all.layout;
      emit_layer(lowering, unit, "backward_data", first,
                 {diff.buffer, parameters.value_of(unit.main, Role::weight), -1, diff_x.all.buffer});
    }
    return diff_x;
  };
  backward_both(lowering, unit, data, weights);
}

}  // namespace orthant::schedule::ops
