#include "orthant/schedule/ops/ops.hpp"

#include <utility>

namespace orthant::schedule::ops {
namespace {

using model::ActivationKind;
using model::Pass;
using Role = model::Parameter::Role;

plan::StatisticsGroup group_of(const Lowering& lowering, const Unit& unit) {
  return plan::statistics_group(lowering.analysis().plan(), lowering.geometry().graph, unit.main, lowering.rank());
}

/// Backward of a rank that has none of the cells: it only takes part in the sums.
void backward_of_nothing(Lowering& lowering, const Unit& unit, const plan::StatisticsGroup& group) {
  const std::string& name = lowering.node(unit.main).name;
  const std::int64_t count = 2 * group.statistics;
  Sums sums = lowering.exchanges().prepare_sums(name + ".diff_sums", count, group.ranks);
  if (!group.ranks.empty()) {
    lowering.zero_doubles(unit.main, sums.mine, count);
    if (!lowering.accumulates()) lowering.parameters().zero_gradients(unit.main);
  }
  lowering.exchanges().sum_up(name + ".diff_statistics", Kind::statistics, std::move(sums));
}

/// `task` has what the op says.
NodeValue normalise(Lowering& lowering, const Unit& unit, model::NormTask task) {
  const bool has_residual = unit.add >= 0;
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const Tensor residual = has_residual ? lowering.fetch(unit, 1) : Tensor{};
  const NodeValue y = lowering.add_dst(unit);
  const std::string& name = lowering.node(unit.main).name;
  const plan::StatisticsGroup group = group_of(lowering, unit);
  if (group.ranks.empty()) return y;

  Emitter& emitter = lowering.emitter();
  int sums = -1;
  if (task.training) {
    Sums parts = lowering.exchanges().prepare_sums(name + ".sums", 2 * group.statistics, group.ranks);
    if (y.own.empty()) {
      lowering.zero_doubles(unit.main, parts.mine, 2 * group.statistics);
    } else {
      emitter.emit(unit.main, "forward_sums", model::NormSumsTask{.groups = group.groups, .x = x.all.layout},
                   {x.all.buffer, parts.mine});
    }
    sums = lowering.exchanges().sum_up(name + ".statistics", Kind::statistics, std::move(parts));
  }
  if (y.own.empty()) return y;
  int& saved = lowering.extra(unit);
  saved = emitter.add_buffer(name + ".saved", 2 * group.statistics * static_cast<std::int64_t>(sizeof(float)));
  task.groups = group.groups;
  task.activation = lowering.activation(unit);
  task.residual = has_residual;
  task.statistics_count = group.items;
  task.x = x.all.layout;
  task.y = y.own.layout;
  if (has_residual) task.residual_layout = residual.all.layout;
  const Parameters& parameters = lowering.parameters();
  emitter.emit(unit.main, "forward", task,
               {x.all.buffer, parameters.value_of(unit.main, Role::norm_weight),
                parameters.value_of(unit.main, Role::norm_bias), parameters.value_of(unit.main, Role::running_mean),
                parameters.value_of(unit.main, Role::running_var), sums, saved, residual.all.buffer, y.own.buffer});
  return y;
}

void differentiate(Lowering& lowering, const Unit& unit) {
  const std::vector<Value> diff = lowering.take_gradients(unit.out, 2);
  const plan::StatisticsGroup group = group_of(lowering, unit);
  const bool has_residual = unit.add >= 0;
  const Tensor& x = lowering.source(unit);
  const Value& y = lowering.value(unit.out).own;
  Tensor diff_x;
  Value diff_residual;
  if (y.empty()) {
    backward_of_nothing(lowering, unit, group);
  } else {
    const std::string& name = lowering.node(unit.main).name;
    const bool two = diff.size() == 2;
    const model::Activation activation = lowering.activation(unit);
    const bool from_y =
        activation.kind != ActivationKind::identity &&
        (has_residual || activation.kind == ActivationKind::tanh || activation.kind == ActivationKind::sigmoid);
    diff_x = x.copied || lowering.may_overwrite(unit.srcs[0]) ? x : lowering.add_diff_src(unit);
    if (has_residual) diff_residual = lowering.over(diff[0], lowering.node(unit.srcs[1]).name + ".gradient");
    const Parameters& parameters = lowering.parameters();
    const int gamma = parameters.value_of(unit.main, Role::norm_weight);
    const int beta = parameters.value_of(unit.main, Role::norm_bias);
    const int saved = lowering.extra(unit);
    const int second = two ? diff[1].buffer : -1;
    const int from = from_y ? y.buffer : -1;
    Sums parts = lowering.exchanges().prepare_sums(name + ".diff_sums", 2 * group.statistics, group.ranks);
    const model::NormSumsTask sums_task{.pass = Pass::backward_data,
                                        .groups = group.groups,
                                        .activation = activation,
                                        .accumulate = lowering.accumulates(),
                                        .x = x.all.layout,
                                        .y = y.layout,
                                        .diff_y = diff[0].layout,
                                        .diff_y2 = two ? diff[1].layout : tensor::as_other,
                                        .diff_residual = has_residual ? diff_residual.layout : tensor::as_other};
    lowering.emitter().emit(unit.main, "backward_sums", sums_task,
                            {diff[0].buffer, second, x.all.buffer, from, gamma, beta, saved, parts.mine,
                             parameters.gradient_of(unit.main, Role::norm_weight),
                             parameters.gradient_of(unit.main, Role::norm_bias), diff_residual.buffer});
    const int sums = lowering.exchanges().sum_up(name + ".diff_statistics", Kind::statistics, std::move(parts));
    // The residual's gradient is the sum of both gradients, taken through the activation: nothing to do twice.
    const model::NormTask task{.pass = Pass::backward_data,
                               .groups = group.groups,
                               .activation = has_residual ? model::Activation{} : activation,
                               .statistics_count = group.items,
                               .x = x.all.layout,
                               .y = y.layout,
                               .diff_y = has_residual ? diff_residual.layout : diff[0].layout,
                               .diff_y2 = two && !has_residual ? diff[1].layout : tensor::as_other,
                               .diff_x = diff_x.all.layout};
    lowering.emitter().emit(unit.main, "backward", task,
                            {has_residual ? diff_residual.buffer : diff[0].buffer, has_residual ? -1 : second,
                             x.all.buffer, has_residual ? -1 : from, gamma, beta, saved, sums, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
  if (has_residual) lowering.pass_back(unit, 1, as_tensor(diff_residual));
}

/// Every pixel by itself: the rank that has it has all its channels.
NodeValue normalise_pixels(Lowering& lowering, const Unit& unit, const model::SampleNorm& op) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  int& saved = lowering.extra(unit);
  saved = lowering.emitter().add_buffer(lowering.node(unit.main).name + ".saved",
                                        2 * tensor::pixels(y.own.layout.extents) * float_bytes);
  const Parameters& parameters = lowering.parameters();
  const model::PixelNormTask task{.affine = op.affine, .epsilon = op.epsilon, .x = x.all.layout, .y = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task,
                          {x.all.buffer, parameters.value_of(unit.main, Role::norm_weight),
                           parameters.value_of(unit.main, Role::norm_bias), saved, y.own.buffer});
  return y;
}

void differentiate_pixels(Lowering& lowering, const Unit& unit, const model::SampleNorm& op) {
  const Value diff = lowering.take_gradient(unit.out);
  const Tensor& x = lowering.source(unit);
  if (diff.empty()) {
    if (!lowering.accumulates()) lowering.parameters().zero_gradients(unit.main);
    return lowering.pass_back(unit, 0, {});
  }
  const Value diff_x = lowering.over(diff, lowering.node(unit.srcs[0]).name + ".gradient");
  const Parameters& parameters = lowering.parameters();
  const model::PixelNormTask task{.pass = Pass::backward_data,
                                  .affine = op.affine,
                                  .epsilon = op.epsilon,
                                  .accumulate = lowering.accumulates(),
                                  .x = x.all.layout,
                                  .y = diff.layout,
                                  .diff_x = diff_x.layout};
  lowering.emitter().emit(unit.main, "backward", task,
                          {diff.buffer, x.all.buffer, parameters.value_of(unit.main, Role::norm_weight),
                           lowering.extra(unit), diff_x.buffer, parameters.gradient_of(unit.main, Role::norm_weight),
                           parameters.gradient_of(unit.main, Role::norm_bias)});
  lowering.pass_back(unit, 0, as_tensor(diff_x));
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::BatchNorm& op) {
  return normalise(lowering, unit, {.training = lowering.trains(), .epsilon = op.epsilon, .momentum = op.momentum});
}

void backward(Lowering& lowering, const Unit& unit, const model::BatchNorm& /*op*/) { differentiate(lowering, unit); }

/// In evaluation as in training: every sample has its own statistics.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::SampleNorm& op) {
  if (op.kind == model::SampleNormKind::layer) return normalise_pixels(lowering, unit, op);
  return normalise(lowering, unit, {.epsilon = op.epsilon});
}

void backward(Lowering& lowering, const Unit& unit, const model::SampleNorm& op) {
  if (op.kind == model::SampleNormKind::layer) return differentiate_pixels(lowering, unit, op);
  differentiate(lowering, unit);
}

}  // namespace orthant::schedule::ops
