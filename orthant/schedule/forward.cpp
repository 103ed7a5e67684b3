#include "orthant/base/checked.hpp"
#include "orthant/schedule/lowering.hpp"

namespace orthant::schedule {
namespace {

using model::Pass;
using Role = model::Parameter::Role;

}  // namespace

model::Pool whole_window(const tensor::Shape& src) {
  return {.kind = model::PoolKind::average, .window = {.size = tensor::spatial(src)}};
}

bool reads_own_output(const model::Graph& graph, const Unit& unit) {
  const model::Op& op = graph.nodes[static_cast<std::size_t>(unit.main)].op;
  return std::holds_alternative<model::Softmax>(op) ||
         activation_of(graph, unit).kind != model::ActivationKind::identity;
}

void Lowering::forward(const Unit& unit) {
  values_[static_cast<std::size_t>(unit.out)] =
      std::visit([&](const auto& op) { return forward(unit, op); }, node(unit.main).op);
}

const Value& Lowering::src(const Unit& unit, std::size_t index) const {
  return values_[static_cast<std::size_t>(unit.srcs[index])];
}

Value Lowering::dst(const Unit& unit) { return add_tensor(node(unit.out).name, local_shape(unit.out)); }

/// True if the only reader of a node's tensor may put something else into its memory, now or in backward.
bool Lowering::may_overwrite(int index) const {
  const int unit = unit_of_[static_cast<std::size_t>(index)];
  return values_[static_cast<std::size_t>(index)].owned && consumers_[static_cast<std::size_t>(index)] == 1 &&
         !reads_own_output(graph_, units_[static_cast<std::size_t>(unit)]);
}

Value Lowering::forward(const Unit& unit, const model::Input&) {
  const tensor::Shape extents = local_shape(unit.main);
  Value value = add_tensor(node(unit.main).name, extents);
  value.owned = false;
  schedule_.buffers.back().persistent = true;
  schedule_.input = value.buffer;
  schedule_.input_layout = value.layout;
  return value;
}

Value Lowering::forward(const Unit& unit, const model::Conv& op) {
  const Value y = dst(unit);
  const model::ConvTask task{.pass = Pass::forward,
                             .window = op.window,
                             .groups = op.groups,
                             .bias = op.bias,
                             .activation = activation_of(graph_, unit),
                             .src = src(unit).layout,
                             .dst = y.layout};
  emit(unit.main, "forward", task,
       {src(unit).buffer, value_of(unit.main, Role::weight), value_of(unit.main, Role::bias), y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::ConvTranspose& op) {
  const Value y = dst(unit);
  const model::ConvTask task{
      .pass = Pass::backward_data, .window = op.window, .groups = op.groups, .src = y.layout, .dst = src(unit).layout};
  emit(unit.main, "forward", task, {src(unit).buffer, value_of(unit.main, Role::weight), y.buffer});
  const model::Activation activation = activation_of(graph_, unit);
  if (op.bias || activation.kind != model::ActivationKind::identity) {
    const model::ActivationTask after{.activation = activation, .src = y.layout, .dst = y.layout};
    emit(unit.main, "bias_activation", after, {y.buffer, value_of(unit.main, Role::bias), y.buffer});
  }
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Pool& op) {
  const Value y = dst(unit);
  int& argmax = extra_[static_cast<std::size_t>(unit.out)];
  if (op.kind == model::PoolKind::max) {
    const std::int64_t bytes = base::checked_mul(tensor::volume(y.layout.extents), model::argmax_bytes(op.window));
    argmax = add_buffer(node(unit.main).name + ".argmax", bytes);
  }
  const model::PoolTask task{.kind = op.kind,
                             .window = op.window,
                             .count_include_pad = op.count_include_pad,
                             .src = src(unit).layout,
                             .dst = y.layout};
  emit(unit.main, "forward", task, {src(unit).buffer, y.buffer, argmax});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::GlobalAveragePool&) {
  return forward(unit, whole_window(src(unit).layout.extents));
}

Value Lowering::forward(const Unit& unit, const model::Dense& op) {
  const Value y = dst(unit);
  const model::DenseTask task{
      .bias = op.bias, .activation = activation_of(graph_, unit), .src = src(unit).layout, .dst = y.layout};
  emit(unit.main, "forward", task,
       {src(unit).buffer, value_of(unit.main, Role::weight), value_of(unit.main, Role::bias), y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::BatchNorm& op) {
  const bool training = options_.mode == Mode::train;
  const bool residual = unit.add >= 0;
  const Value y = dst(unit);
  int& saved = extra_[static_cast<std::size_t>(unit.out)];
  saved =
      add_buffer(node(unit.main).name + ".saved", 2 * y.layout.extents.c * static_cast<std::int64_t>(sizeof(float)));
  const model::NormTask task{.training = training,
                             .epsilon = op.epsilon,
                             .momentum = op.momentum,
                             .activation = activation_of(graph_, unit),
                             .residual = residual,
                             .statistics_count = tensor::pixels(node(unit.main).shape),
                             .x = src(unit).layout,
                             .y = y.layout,
                             .residual_layout = residual ? src(unit, 1).layout : tensor::Layout{}};
  emit(unit.main, "forward", task,
       {src(unit).buffer, value_of(unit.main, Role::norm_weight), value_of(unit.main, Role::norm_bias),
        value_of(unit.main, Role::running_mean), value_of(unit.main, Role::running_var), saved,
        residual ? src(unit, 1).buffer : -1, y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Activation& op) {
  const Value y = may_overwrite(unit.srcs[0]) ? src(unit) : dst(unit);
  const model::ActivationTask task{.activation = op, .src = src(unit).layout, .dst = y.layout};
  emit(unit.main, "forward", task, {src(unit).buffer, -1, y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Softmax&) {
  const Value y = dst(unit);
  emit(unit.main, "forward", model::SoftmaxTask{.src = src(unit).layout, .dst = y.layout},
       {src(unit).buffer, y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Scale& op) {
  const Value y = dst(unit);
  const model::CopyTask task{.factor = op.factor, .src = src(unit).layout, .dst = y.layout};
  emit(unit.main, "forward", task, {src(unit).buffer, y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Dropout& op) {
  if (options_.mode == Mode::evaluate || op.rate == 0) {
    Value alias = src(unit);
    alias.owned = false;
    return alias;
  }
  const Value y = dst(unit);
  const tensor::Distribution distribution = plan::distribution(plan_, graph_, unit.main);
  const model::DropoutTask task{.rate = op.rate,
                                .layer = unit.main,
                                .global = distribution.global,
                                .box = tensor::owned_box(distribution, rank_),
                                .src = src(unit).layout,
                                .dst = y.layout};
  emit(unit.main, "forward", task, {src(unit).buffer, y.buffer});
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Add&) {
  const Value y = dst(unit);
  Value sum = src(unit);
  for (std::size_t i = 1; i < unit.srcs.size(); ++i) {
    const model::AddTask task{.a = sum.layout, .b = src(unit, i).layout, .dst = y.layout};
    emit(unit.main, "forward", task, {sum.buffer, src(unit, i).buffer, y.buffer});
    sum = y;
  }
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Concat&) {
  const Value y = dst(unit);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
    const std::int64_t channels = src(unit, i).layout.extents.c;
    const model::CopyTask task{.src = src(unit, i).layout, .dst = tensor::channel_range(y.layout, first, channels)};
    emit(unit.main, "forward", task, {src(unit, i).buffer, y.buffer});
    first += channels;
  }
  return y;
}

Value Lowering::forward(const Unit& unit, const model::Flatten&) {
  const tensor::Layout& from = src(unit).layout;
  if (tensor::is_dense(from) && (from.extents.c == 1 || tensor::pixels(from.extents) == from.extents.n)) {
    return {.buffer = src(unit).buffer, .layout = tensor::channels_last(local_shape(unit.out)), .owned = false};
  }
  const Value y = dst(unit);
  emit(unit.main, "forward", model::CopyTask{.src = from, .dst = tensor::channels_first(from.extents)},
       {src(unit).buffer, y.buffer});
  return y;
}

void Lowering::loss() {
  const int last = static_cast<int>(graph_.nodes.size()) - 1;
  const Value& output = values_[static_cast<std::size_t>(last)];
  schedule_.output = output.buffer;
  schedule_.output_layout = output.layout;
  schedule_.labels = model::takes_labels(graph_.loss);
  schedule_.target_shape = schedule_.labels ? tensor::Shape{output.layout.extents.n, 1, output.layout.extents.d,
                                                            output.layout.extents.h, output.layout.extents.w}
                                            : output.layout.extents;
  const std::int64_t items = tensor::volume(schedule_.target_shape);
  schedule_.target = add_buffer("target", base::checked_mul(items, 4), true);
  const auto terms = static_cast<std::int64_t>(graph_.loss.terms.size());
  schedule_.loss = add_buffer("loss", (terms + 1) * static_cast<std::int64_t>(sizeof(double)), true);

  int diff = -1;
  if (options_.mode == Mode::train) {
    const Unit& unit = units_[static_cast<std::size_t>(unit_of_[static_cast<std::size_t>(last)])];
    const bool in_place = output.owned && !options_.keep_output && !reads_own_output(graph_, unit);
    const Value gradient = in_place ? output : add_tensor("output.gradient", output.layout.extents);
    diff = gradient.buffer;
    gradients_[static_cast<std::size_t>(last)].push_back(gradient);
  }
  emit(last, "loss", model::LossTask{.loss = graph_.loss, .global = node(last).shape, .output = output.layout},
       {output.buffer, schedule_.target, diff, schedule_.loss});
}

}  // namespace orthant::schedule
