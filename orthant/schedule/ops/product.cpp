#include "orthant/schedule/ops/ops.hpp"

#include <string>

namespace orthant::schedule::ops {
namespace {

using model::Pass;
using Role = model::Parameter::Role;

std::string gradient_name(const Lowering& lowering, const Unit& unit, std::size_t source) {
  return lowering.node(unit.srcs[source]).name + ".gradient";
}

/// One number per channel of a value.
tensor::Layout per_channel(const Value& value) { return tensor::channels_last({.n = 1, .c = value.layout.extents.c}); }

void zero_gradients(Lowering& lowering, const Unit& unit) {
  if (!lowering.accumulates()) lowering.parameters().zero_gradients(unit.main);
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Multiply& /*op*/) {
  const Tensor a = lowering.source(unit) = lowering.fetch(unit, 0);
  const Tensor b = lowering.gate(unit) = lowering.fetch(unit, 1);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  const model::ProductTask task{.a = a.all.layout, .b = b.all.layout, .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task, {a.all.buffer, b.all.buffer, -1, y.own.buffer});
  return y;
}

/// What every rank adds up for the second factor from its cells is summed where that factor came from.
void backward(Lowering& lowering, const Unit& unit, const model::Multiply& /*op*/) {
  const Value diff = lowering.take_gradient(unit.out);
  const Tensor& a = lowering.source(unit);
  const Tensor& b = lowering.gate(unit);
  Tensor diff_a, diff_b;
  if (!diff.empty() && lowering.needs_gradient(unit.srcs[1])) {
    diff_b = lowering.emitter().add_tensor(gradient_name(lowering, unit, 1), lowering.share(unit.main).sources[1]);
    const model::ProductSumsTask task{.a = diff.layout, .b = a.all.layout, .dst = diff_b.all.layout};
    lowering.emitter().emit(unit.main, "backward_gate", task, {diff.buffer, a.all.buffer, diff_b.all.buffer});
  }
  if (!diff.empty() && lowering.needs_gradient(unit.srcs[0])) {
    const Value product = lowering.over(diff, gradient_name(lowering, unit, 0));
    const model::ProductTask task{.a = diff.layout, .b = b.all.layout, .dst = product.layout};
    lowering.emitter().emit(unit.main, "backward_data", task, {diff.buffer, b.all.buffer, -1, product.buffer});
    diff_a = as_tensor(product);
  }
  lowering.pass_back(unit, 0, diff_a);
  lowering.pass_back(unit, 1, diff_b);
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Affine& /*op*/) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  const Parameters& parameters = lowering.parameters();
  const model::ProductTask task{.a = x.all.layout, .b = per_channel(y.own), .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task,
                          {x.all.buffer, parameters.value_of(unit.main, Role::norm_weight),
                           parameters.value_of(unit.main, Role::norm_bias), y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Affine& op) {
  const Value diff = lowering.take_gradient(unit.out);
  if (diff.empty()) {
    if (op.trainable) zero_gradients(lowering, unit);
    return lowering.pass_back(unit, 0, {});
  }
  const Tensor& x = lowering.source(unit);
  const Parameters& parameters = lowering.parameters();
  Emitter& emitter = lowering.emitter();
  if (op.trainable) {
    const model::ProductSumsTask task{
        .accumulate = lowering.accumulates(), .a = diff.layout, .b = x.all.layout, .dst = per_channel(diff)};
    emitter.emit(unit.main, "backward_weights", task,
                 {diff.buffer, x.all.buffer, parameters.gradient_of(unit.main, Role::norm_weight)});
  }
  if (op.trainable && op.bias) {
    emitter.emit(unit.main, "backward_bias",
                 model::BiasGradientTask{.accumulate = lowering.accumulates(), .dst = diff.layout},
                 {diff.buffer, parameters.gradient_of(unit.main, Role::norm_bias)});
  }
  if (!lowering.needs_gradient(unit.srcs[0])) return;
  const Value diff_x = lowering.over(diff, gradient_name(lowering, unit, 0));
  const model::ProductTask task{.a = diff.layout, .b = per_channel(diff), .dst = diff_x.layout};
  emitter.emit(unit.main, "backward_data", task,
               {diff.buffer, parameters.value_of(unit.main, Role::norm_weight), -1, diff_x.buffer});
  lowering.pass_back(unit, 0, as_tensor(diff_x));
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::PRelu& op) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  const model::PReluTask task{.shared = op.shared, .src = x.all.layout, .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task,
                          {x.all.buffer, lowering.parameters().value_of(unit.main, Role::norm_weight), y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::PRelu& op) {
  const Value diff = lowering.take_gradient(unit.out);
  if (diff.empty()) {
    zero_gradients(lowering, unit);
    return lowering.pass_back(unit, 0, {});
  }
  const Tensor& x = lowering.source(unit);
  const Value diff_x = lowering.over(diff, gradient_name(lowering, unit, 0));
  const Parameters& parameters = lowering.parameters();
  const model::PReluTask task{.pass = Pass::backward_data,
                              .shared = op.shared,
                              .accumulate = lowering.accumulates(),
                              .src = x.all.layout,
                              .dst = diff.layout,
                              .diff_src = diff_x.layout};
  lowering.emitter().emit(unit.main, "backward", task,
                          {diff.buffer, x.all.buffer, parameters.value_of(unit.main, Role::norm_weight), diff_x.buffer,
                           parameters.gradient_of(unit.main, Role::norm_weight)});
  lowering.pass_back(unit, 0, as_tensor(diff_x));
}

}  // namespace orthant::schedule::ops
