#include "orthant/schedule/lowering.hpp"

namespace orthant::schedule {
namespace {

using model::ActivationKind;
using model::Pass;
using Role = model::Parameter::Role;

/// True if the tensor is the whole of its buffer, without gaps.
bool is_dense(const Value& value) { return value.layout.offset == 0 && tensor::is_dense(value.layout); }

}  // namespace

void Lowering::backward(const Unit& unit) {
  if (!needs_gradient(unit.out) || gradients_[static_cast<std::size_t>(unit.out)].empty()) return;
  std::visit([&](const auto& op) { backward(unit, op); }, node(unit.main).op);
}

/// What the readers of `index` passed back, summed until at most `most` remain.
std::vector<Value> Lowering::take_gradients(int index, std::size_t most) {
  std::vector<Value>& list = gradients_[static_cast<std::size_t>(index)];
  while (list.size() > most) {
    const Value b = list.back();
    list.pop_back();
    const Value a = list.back();
    const Value sum = over(a, node(index).name + ".gradient", a.layout.extents);
    emit(index, "sum_gradients", model::AddTask{.a = a.layout, .b = b.layout, .dst = sum.layout},
         {a.buffer, b.buffer, sum.buffer});
    list.back() = sum;
  }
  return std::move(list);
}

Value Lowering::take_gradient(int index) { return take_gradients(index, 1).front(); }

/// The memory of `gradient` if nobody else reads it, else a new tensor.
Value Lowering::over(const Value& gradient, const std::string& name, const tensor::Shape& extents) {
  return gradient.owned && is_dense(gradient) ? gradient : add_tensor(name, extents);
}

void Lowering::pass_to(int index, const Value& gradient) {
  if (needs_gradient(index)) gradients_[static_cast<std::size_t>(index)].push_back(gradient);
}

Value Lowering::diff_src(const Unit& unit, std::size_t index) {
  return add_tensor(node(unit.srcs[index]).name + ".gradient", src(unit, index).layout.extents);
}

/// The same gradient without gaps between its rows: oneDNN takes nothing else.
Value Lowering::dense(const Unit& unit, const Value& gradient) {
  if (is_dense(gradient)) return gradient;
  const Value copy = add_tensor(node(unit.out).name + ".gradient", gradient.layout.extents);
  emit(unit.main, "gather_gradient", model::CopyTask{.src = gradient.layout, .dst = copy.layout},
       {gradient.buffer, copy.buffer});
  return copy;
}

/// The gradient of a unit's result before its activation.
Value Lowering::before_activation(const Unit& unit) {
  const model::Activation activation = activation_of(graph_, unit);
  if (activation.kind == ActivationKind::identity || activation_undone_[static_cast<std::size_t>(unit.out)]) {
    return dense(unit, take_gradient(unit.out));
  }
  const std::vector<Value> gradients = take_gradients(unit.out, 2);
  const Value first = dense(unit, gradients[0]);
  const bool two = gradients.size() == 2;
  const Value& y = values_[static_cast<std::size_t>(unit.out)];
  const Value before = over(first, node(unit.out).name + ".gradient", y.layout.extents);
  const model::ActivationTask task{.pass = Pass::backward_data,
                                   .activation = activation,
                                   .src = before.layout,
                                   .dst = y.layout,
                                   .second = two ? gradients[1].layout : tensor::Layout{}};
  emit(unit.out, "backward_data", task, {first.buffer, two ? gradients[1].buffer : -1, y.buffer, before.buffer});
  return before;
}

void Lowering::backward(const Unit& unit, const model::Input&) {
  Value gradient = dense(unit, take_gradient(unit.out));
  schedule_.buffers[static_cast<std::size_t>(gradient.buffer)].persistent = true;
  schedule_.input_gradient = gradient.buffer;
}

void Lowering::backward(const Unit& unit, const model::Conv& op) {
  const Value diff = before_activation(unit);
  const Value& x = src(unit);
  model::ConvTask task{.pass = Pass::backward_weights,
                       .window = op.window,
                       .groups = op.groups,
                       .bias = op.bias,
                       .src = x.layout,
                       .dst = diff.layout};
  emit(unit.main, "backward_weights", task,
       {x.buffer, diff.buffer, gradient_of(unit.main, Role::weight), gradient_of(unit.main, Role::bias)});
  if (!needs_gradient(unit.srcs[0])) return;
  const Value diff_x = diff_src(unit);
  task.pass = Pass::backward_data;
  task.bias = false;
  task.src = diff_x.layout;
  emit(unit.main, "backward_data", task, {diff.buffer, value_of(unit.main, Role::weight), diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

void Lowering::backward(const Unit& unit, const model::ConvTranspose& op) {
  const Value diff = before_activation(unit);
  const Value& x = src(unit);
  model::ConvTask task{
      .pass = Pass::backward_weights, .window = op.window, .groups = op.groups, .src = diff.layout, .dst = x.layout};
  emit(unit.main, "backward_weights", task, {diff.buffer, x.buffer, gradient_of(unit.main, Role::weight), -1});
  if (op.bias) {
    emit(unit.main, "backward_bias", model::BiasGradientTask{.dst = diff.layout},
         {diff.buffer, gradient_of(unit.main, Role::bias)});
  }
  if (!needs_gradient(unit.srcs[0])) return;
  const Value diff_x = diff_src(unit);
  task.pass = Pass::forward;
  task.dst = diff_x.layout;
  emit(unit.main, "backward_data", task, {diff.buffer, value_of(unit.main, Role::weight), -1, diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

void Lowering::backward(const Unit& unit, const model::Dense& op) {
  const Value diff = before_activation(unit);
  const Value& x = src(unit);
  model::DenseTask task{.pass = Pass::backward_weights, .bias = op.bias, .src = x.layout, .dst = diff.layout};
  emit(unit.main, "backward_weights", task,
       {x.buffer, diff.buffer, gradient_of(unit.main, Role::weight), gradient_of(unit.main, Role::bias)});
  if (!needs_gradient(unit.srcs[0])) return;
  const Value diff_x = diff_src(unit);
  task.pass = Pass::backward_data;
  task.bias = false;
  task.src = diff_x.layout;
  emit(unit.main, "backward_data", task, {diff.buffer, value_of(unit.main, Role::weight), diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

/// Where only this pooling reads an activation's result, its gradient goes through the activation in the same
/// pass and is written over that result.
void Lowering::pool_backward(const Unit& unit, model::PoolTask task) {
  const int source = unit.srcs[0];
  const Unit& producer = units_[static_cast<std::size_t>(unit_of_[static_cast<std::size_t>(source)])];
  const bool through = !std::holds_alternative<model::BatchNorm>(node(producer.main).op) &&
                       consumers_[static_cast<std::size_t>(source)] == 1 && src(unit).owned;
  const Value diff = take_gradient(unit.out);
  task.pass = Pass::backward_data;
  task.dst = diff.layout;
  task.src = src(unit).layout;
  if (through) task.activation = activation_of(graph_, producer);
  if (task.activation.kind != ActivationKind::identity) {
    activation_undone_[static_cast<std::size_t>(source)] = true;
    emit(unit.main, "backward_data", task,
         {diff.buffer, extra_[static_cast<std::size_t>(unit.out)], src(unit).buffer, src(unit).buffer});
    pass_to(source, src(unit));
    return;
  }
  const Value diff_x = diff_src(unit);
  task.src = diff_x.layout;
  emit(unit.main, "backward_data", task, {diff.buffer, extra_[static_cast<std::size_t>(unit.out)], -1, diff_x.buffer});
  pass_to(source, diff_x);
}

void Lowering::backward(const Unit& unit, const model::Pool& op) {
  pool_backward(unit, {.kind = op.kind, .window = op.window, .count_include_pad = op.count_include_pad});
}

void Lowering::backward(const Unit& unit, const model::GlobalAveragePool&) {
  backward(unit, whole_window(src(unit).layout.extents));
}

void Lowering::backward(const Unit& unit, const model::BatchNorm& op) {
  const std::vector<Value> diff = take_gradients(unit.out, 2);
  const bool two = diff.size() == 2;
  const bool residual = unit.add >= 0;
  const model::Activation activation = activation_of(graph_, unit);
  const bool from_y =
      activation.kind != ActivationKind::identity &&
      (residual || activation.kind == ActivationKind::tanh || activation.kind == ActivationKind::sigmoid);
  const Value& x = src(unit);
  const Value& y = values_[static_cast<std::size_t>(unit.out)];
  const Value diff_x = may_overwrite(unit.srcs[0]) ? x : diff_src(unit);
  const Value diff_residual =
      residual ? over(diff[0], node(unit.srcs[1]).name + ".gradient", y.layout.extents) : Value{};
  const model::NormTask task{.pass = Pass::backward_data,
                             .epsilon = op.epsilon,
                             .momentum = op.momentum,
                             .activation = activation,
                             .residual = residual,
                             .statistics_count = tensor::pixels(node(unit.main).shape),
                             .x = x.layout,
                             .y = y.layout,
                             .diff_y = diff[0].layout,
                             .diff_y2 = two ? diff[1].layout : tensor::Layout{},
                             .diff_x = diff_x.layout,
                             .diff_residual = diff_residual.layout};
  emit(unit.main, "backward", task,
       {diff[0].buffer, two ? diff[1].buffer : -1, x.buffer, from_y ? y.buffer : -1,
        value_of(unit.main, Role::norm_weight), value_of(unit.main, Role::norm_bias),
        extra_[static_cast<std::size_t>(unit.out)], gradient_of(unit.main, Role::norm_weight),
        gradient_of(unit.main, Role::norm_bias), diff_x.buffer, diff_residual.buffer});
  pass_to(unit.srcs[0], diff_x);
  if (residual) pass_to(unit.srcs[1], diff_residual);
}

void Lowering::backward(const Unit& unit, const model::Activation&) { pass_to(unit.srcs[0], before_activation(unit)); }

void Lowering::backward(const Unit& unit, const model::Softmax&) {
  const Value diff = dense(unit, take_gradient(unit.out));
  const Value diff_x = diff_src(unit);
  emit(unit.main, "backward_data",
       model::SoftmaxTask{.pass = Pass::backward_data, .src = diff_x.layout, .dst = diff.layout},
       {diff.buffer, values_[static_cast<std::size_t>(unit.out)].buffer, diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

void Lowering::backward(const Unit& unit, const model::Scale& op) {
  const Value diff = take_gradient(unit.out);
  const Value diff_x = over(diff, node(unit.srcs[0]).name + ".gradient", diff.layout.extents);
  emit(unit.main, "backward_data", model::CopyTask{.factor = op.factor, .src = diff.layout, .dst = diff_x.layout},
       {diff.buffer, diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

void Lowering::backward(const Unit& unit, const model::Dropout& op) {
  const Value diff = take_gradient(unit.out);
  if (op.rate == 0) return pass_to(unit.srcs[0], diff);
  const Value diff_x = over(diff, node(unit.srcs[0]).name + ".gradient", diff.layout.extents);
  const tensor::Distribution distribution = plan::distribution(plan_, graph_, unit.main);
  const model::DropoutTask task{.rate = op.rate,
                                .layer = unit.main,
                                .global = distribution.global,
                                .box = tensor::owned_box(distribution, rank_),
                                .src = diff.layout,
                                .dst = diff_x.layout};
  emit(unit.main, "backward_data", task, {diff.buffer, diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

void Lowering::backward(const Unit& unit, const model::Add&) {
  Value diff = take_gradient(unit.out);
  std::size_t readers = 0;
  for (const int source : unit.srcs) readers += needs_gradient(source) ? 1 : 0;
  diff.owned = diff.owned && readers == 1;
  for (const int source : unit.srcs) pass_to(source, diff);
}

void Lowering::backward(const Unit& unit, const model::Concat&) {
  const Value diff = take_gradient(unit.out);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
    const std::int64_t channels = src(unit, i).layout.extents.c;
    pass_to(
        unit.srcs[i],
        {.buffer = diff.buffer, .layout = tensor::channel_range(diff.layout, first, channels), .owned = diff.owned});
    first += channels;
  }
}

void Lowering::backward(const Unit& unit, const model::Flatten&) {
  const Value diff = dense(unit, take_gradient(unit.out));
  const Value& x = src(unit);
  if (values_[static_cast<std::size_t>(unit.out)].buffer == x.buffer) {
    return pass_to(unit.srcs[0],
                   {.buffer = diff.buffer, .layout = tensor::channels_last(x.layout.extents), .owned = diff.owned});
  }
  const Value diff_x = diff_src(unit);
  emit(unit.main, "backward_data",
       model::CopyTask{.src = tensor::channels_first(x.layout.extents), .dst = diff_x.layout},
       {diff.buffer, diff_x.buffer});
  pass_to(unit.srcs[0], diff_x);
}

}  // namespace orthant::schedule
