#include "orthant/schedule/ops/ops.hpp"

namespace orthant::schedule::ops {
namespace {

using model::Pass;

model::DropoutTask dropout_task(const Lowering& lowering, const Unit& unit, const model::Dropout& op, const Value& from,
                                const Value& to) {
  return {.rate = op.rate,
          .layer = unit.main,
          .global = at(lowering.analysis().graph().nodes, unit.main).shape,
          .box = lowering.port(from).box,
          .src = from.layout,
          .dst = to.layout};
}

std::string gradient_name(const Lowering& lowering, const Unit& unit) {
  return lowering.node(unit.srcs[0]).name + ".gradient";
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Activation& op) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const int source = unit.srcs[0];
  const bool same_box = lowering.share(unit.out).owned == lowering.share(source).owned &&
                        lowering.stored(unit.out) == lowering.stored(source);
  const bool over_src =
      same_box && !x.copied && !x.empty() && lowering.may_overwrite(source) && !model::derivative_reads_src(op.kind);
  NodeValue y = over_src ? lowering.value(source) : lowering.add_dst(unit);
  y.filled = false;
  if (y.own.empty()) return y;
  const model::ActivationTask task{.activation = op, .src = x.all.layout, .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task, {x.all.buffer, -1, y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Activation& /*op*/) {
  lowering.pass_back(unit, 0, as_tensor(lowering.before_activation(unit)));
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Softmax& /*op*/) {
  const Tensor x = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  lowering.emitter().emit(unit.main, "forward", model::SoftmaxTask{.src = x.all.layout, .dst = y.own.layout},
                          {x.all.buffer, y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Softmax& /*op*/) {
  const Value diff = lowering.with_whole_pixels(unit, lowering.take_gradient(unit.out));
  const Tensor diff_x = lowering.add_diff_src(unit);
  const Value& y = lowering.value(unit.out).own;
  if (!diff.empty()) {
    const model::SoftmaxTask task{
        .pass = Pass::backward_data, .src = diff_x.all.layout, .dst = y.layout, .diff_dst = diff.layout};
    lowering.emitter().emit(unit.main, "backward_data", task, {diff.buffer, y.buffer, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Scale& op) {
  const Tensor x = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  const model::CopyTask task{.factor = op.factor, .offset = op.offset, .src = x.all.layout, .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task, {x.all.buffer, y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Scale& op) {
  const Value diff = lowering.take_gradient(unit.out);
  if (diff.empty()) return lowering.pass_back(unit, 0, {});
  const Value diff_x = lowering.over(diff, gradient_name(lowering, unit));
  lowering.emitter().emit(unit.main, "backward_data",
                          model::CopyTask{.factor = op.factor, .src = diff.layout, .dst = diff_x.layout},
                          {diff.buffer, diff_x.buffer});
  lowering.pass_back(unit, 0, as_tensor(diff_x));
}

/// Nothing is done in evaluation, or without a rate: dst is src, unless its readers need room around it.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Dropout& op) {
  const Tensor x = lowering.fetch(unit);
  const bool keeps_all = !lowering.trains() || op.rate == 0;
  if (keeps_all && lowering.share(unit.out).owned == lowering.stored(unit.out)) {
    Value alias = x.all;
    alias.owned = false;
    return {.own = alias, .stored = alias};
  }
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  if (keeps_all) {
    lowering.emitter().copy(unit.main, "forward", x.all, y.own);
  } else {
    lowering.emitter().emit(unit.main, "forward", dropout_task(lowering, unit, op, x.all, y.own),
                            {x.all.buffer, y.own.buffer});
  }
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Dropout& op) {
  const Value diff = lowering.take_gradient(unit.out);
  if (diff.empty() || op.rate == 0) return lowering.pass_back(unit, 0, as_tensor(diff));
  const Value diff_x = lowering.over(diff, gradient_name(lowering, unit));
  lowering.emitter().emit(unit.main, "backward_data", dropout_task(lowering, unit, op, diff, diff_x),
                          {diff.buffer, diff_x.buffer});
  lowering.pass_back(unit, 0, as_tensor(diff_x));
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Add& /*op*/) {
  std::vector<Value> terms;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) terms.push_back(lowering.fetch(unit, i).all);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  Value sum = terms.front();
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const model::AddTask task{.a = sum.layout, .b = terms[i].layout, .dst = y.own.layout};
    lowering.emitter().emit(unit.main, "forward", task, {sum.buffer, terms[i].buffer, y.own.buffer});
    sum = y.own;
  }
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Add& /*op*/) {
  Value diff = lowering.take_gradient(unit.out);
  std::size_t readers = 0;
  for (const int source : unit.srcs) readers += lowering.needs_gradient(source) ? 1 : 0;
  diff.owned = diff.owned && readers == 1;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) lowering.pass_back(unit, i, as_tensor(diff));
}

}  // namespace orthant::schedule::ops
