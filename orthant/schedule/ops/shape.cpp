#include "orthant/schedule/ops/ops.hpp"

namespace orthant::schedule::ops {
namespace {

/// True if a tensor that is flattened keeps its order in memory: channels are the slowest in a vector.
bool keeps_order(const tensor::Shape& extents) { return extents.c == 1 || tensor::pixels(extents) == extents.n; }

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Input& /*op*/) {
  NodeValue value = lowering.add_dst(unit);
  value.own.owned = value.stored.owned = false;
  value.filled = true;  // the loader brings the halo, too
  if (value.stored.buffer >= 0) lowering.emitter().buffer(value.stored.buffer).persistent = true;
  lowering.schedule().inputs.push_back(lowering.port(value.stored));
  return value;
}

void backward(Lowering& lowering, const Unit& unit, const model::Input& /*op*/) {
  const Value gradient = lowering.with_whole_pixels(unit, lowering.take_gradient(unit.out));
  Emitter& emitter = lowering.emitter();
  if (gradient.buffer >= 0) emitter.buffer(emitter.root_of(gradient.buffer)).persistent = true;
  lowering.schedule().input_gradients.push_back(lowering.port(gradient));
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Concat& /*op*/) {
  std::vector<Tensor> terms;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) terms.push_back(lowering.fetch(unit, i));
  const NodeValue y = lowering.add_dst(unit);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
    const Value& x = terms[i].all;
    if (!x.empty()) {
      const tensor::Layout into =
          tensor::channel_range(y.own.layout, first + x.box.lo.c - y.own.box.lo.c, x.box.hi.c - x.box.lo.c);
      lowering.emitter().emit(unit.main, "forward", model::CopyTask{.src = x.layout, .dst = into},
                              {x.buffer, y.own.buffer});
    }
    first += lowering.node(unit.srcs[i]).shape.c;
  }
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Concat& /*op*/) {
  const Value diff = lowering.take_gradient(unit.out);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
    Tensor gradient;
    if (const auto& boxes = lowering.share(unit.main).sources[i]; !boxes.empty()) {
      const tensor::Box& box = boxes.front();
      Value channels = diff;
      channels.box = box;
      channels.layout = tensor::channel_range(diff.layout, first + box.lo.c - diff.box.lo.c, box.hi.c - box.lo.c);
      gradient = as_tensor(channels);
    }
    lowering.pass_back(unit, i, gradient);
    first += lowering.node(unit.srcs[i]).shape.c;
  }
}

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Flatten& /*op*/) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const tensor::Box& owned = lowering.share(unit.out).owned;
  const tensor::Shape& from = x.all.layout.extents;
  const bool same_order = tensor::is_dense(x.all.layout) && keeps_order(from);
  if (!x.empty() && same_order && owned == lowering.stored(unit.out)) {
    Value alias{.buffer = x.all.buffer, .box = owned, .layout = {}, .owned = false};
    alias.layout = tensor::channels_last(tensor::extents_of(owned));
    alias.layout.offset = x.all.layout.offset;
    return {.own = alias, .stored = alias};
  }
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  lowering.emitter().emit(unit.main, "forward", model::CopyTask{.src = x.all.layout, .dst = unflattened(y.own, from)},
                          {x.all.buffer, y.own.buffer});
  return y;
}

void backward(Lowering& lowering, const Unit& unit, const model::Flatten& /*op*/) {
  const Value diff = lowering.take_gradient(unit.out);
  const Tensor& x = lowering.source(unit);
  if (diff.empty()) return lowering.pass_back(unit, 0, {});
  const tensor::Shape& extents = x.all.layout.extents;
  if (tensor::is_dense(diff.layout) && keeps_order(extents)) {
    Value same{.buffer = diff.buffer, .box = x.all.box, .layout = tensor::channels_last(extents), .owned = diff.owned};
    same.layout.offset = diff.layout.offset;
    return lowering.pass_back(unit, 0, as_tensor(same));
  }
  const Tensor diff_x = lowering.add_diff_src(unit);
  lowering.emitter().emit(unit.main, "backward_data",
                          model::CopyTask{.src = unflattened(diff, extents), .dst = diff_x.all.layout},
                          {diff.buffer, diff_x.all.buffer});
  lowering.pass_back(unit, 0, diff_x);
}

}  // namespace orthant::schedule::ops
