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
  const std::int64_t count = 2 * lowering.channel_count(unit.main);
  Sums sums = lowering.exchanges().prepare_sums(name + ".diff_sums", count, group.ranks);
  if (!group.ranks.empty()) {
    lowering.zero_doubles(unit.main, sums.mine, count);
    if (!lowering.accumulates()) lowering.parameters().zero_gradients(unit.main);
  }
  lowering.exchanges().sum_up(name + ".diff_statistics", Kind::statistics, std::move(sums));
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::BatchNorm& op) {
  const bool has_residual = unit.add >= 0;
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const Tensor residual = has_residual ? lowering.fetch(unit, 1) : Tensor{};
  const NodeValue y = lowering.add_dst(unit);
  const std::string& name = lowering.node(unit.main).name;
  const plan::StatisticsGroup group = group_of(lowering, unit);
  if (group.ranks.empty()) return y;

  Emitter& emitter = lowering.emitter();
  const std::int64_t channels = lowering.channel_count(unit.main);
  int sums = -1;
  if (lowering.trains()) {
    Sums parts = lowering.exchanges().prepare_sums(name + ".sums", 2 * channels, group.ranks);
    if (y.own.empty()) {
      lowering.zero_doubles(unit.main, parts.mine, 2 * channels);
    } else {
      emitter.emit(unit.main, "forward_sums", model::NormSumsTask{.x = x.all.layout}, {x.all.buffer, parts.mine});
    }
    sums = lowering.exchanges().sum_up(name + ".statistics", Kind::statistics, std::move(parts));
  }
  if (y.own.empty()) return y;
  int& saved = lowering.extra(unit);
  saved = emitter.add_buffer(name + ".saved", 2 * channels * static_cast<std::int64_t>(sizeof(float)));
  const model::NormTask task{.training = lowering.trains(),
                             .epsilon = op.epsilon,
                             .momentum = op.momentum,
                             .activation = lowering.activation(unit),
                             .residual = has_residual,
                             .statistics_count = group.pixels,
                             .x = x.all.layout,
                             .y = y.own.layout,
                             .residual_layout = has_residual ? residual.all.layout : tensor::as_other};
  const Parameters& parameters = lowering.parameters();
  emitter.emit(unit.main, "forward", task,
               {x.all.buffer, parameters.value_of(unit.main, Role::norm_weight),
                parameters.value_of(unit.main, Role::norm_bias), parameters.value_of(unit.main, Role::running_mean),
                parameters.value_of(unit.main, Role::running_var), sums, saved, residual.all.buffer, y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::BatchNorm& /*op*/) {
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
    const std::int64_t channels = lowering.channel_count(unit.main);
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
    Sums parts = lowering.exchanges().prepare_sums(name + ".diff_sums", 2 * channels, group.ranks);
    const model::NormSumsTask sums_task{.pass = Pass::backward_data,
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
                               .activation = has_residual ? model::Activation{} : activation,
                               .statistics_count = group.pixels,
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

}  // namespace orthant::schedule::ops
