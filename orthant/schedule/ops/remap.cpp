#include "orthant/model/traits.hpp"
#include "orthant/schedule/ops/ops.hpp"

#include <array>

namespace orthant::schedule::ops {
namespace {

/// Which cells of what this rank read make the cells that it has.
std::array<model::RemapTask::Axis, 3> axes_between(const Lowering& lowering, const Unit& unit, const tensor::Box& src,
                                                   const tensor::Box& dst) {
  const model::OpTraits traits = model::traits_of(lowering.node(unit.main).op);
  const auto& map = std::get<model::AlongAxes>(traits.reads);
  std::array<model::RemapTask::Axis, 3> axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const tensor::Dim dim = tensor::spatial_dims[i];
    axes[i] = model::axis_of(map.rules[i], dst[dim], src[dim], lowering.node(unit.srcs[0]).shape[dim],
                             lowering.node(unit.main).shape[dim]);
  }
  return axes;
}

NodeValue remap(Lowering& lowering, const Unit& unit) {
  const Tensor x = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  if (y.own.empty()) return y;
  const model::RemapTask task{
      .axes = axes_between(lowering, unit, x.all.box, y.own.box), .src = x.all.layout, .dst = y.own.layout};
  lowering.emitter().emit(unit.main, "forward", task, {x.all.buffer, y.own.buffer});
  return y;
}

/// The adjoint: what the cells of dst that read a cell have as their gradient.
void remap_back(Lowering& lowering, const Unit& unit) {
  const Value diff = lowering.take_gradient(unit.out);
  const Tensor diff_x = lowering.add_diff_src(unit);
  if (!diff.empty() && !diff_x.empty()) {
    model::RemapTask task{
        .axes = axes_between(lowering, unit, diff_x.all.box, diff.box), .src = diff.layout, .dst = diff_x.all.layout};
    for (std::size_t i = 0; i < task.axes.size(); ++i)
      task.axes[i] = model::adjoint(task.axes[i], diff_x.all.layout.extents[tensor::spatial_dims[i]]);
    lowering.emitter().emit(unit.main, "backward_data", task, {diff.buffer, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
}

}  // namespace

NodeValue forward(Lowering& lowering, const Unit& unit, const model::Resize& /*op*/) { return remap(lowering, unit); }
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Slice& /*op*/) { return remap(lowering, unit); }
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Pad& /*op*/) { return remap(lowering, unit); }
void backward(Lowering& lowering, const Unit& unit, const model::Resize& /*op*/) { remap_back(lowering, unit); }
void backward(Lowering& lowering, const Unit& unit, const model::Slice& /*op*/) { remap_back(lowering, unit); }
void backward(Lowering& lowering, const Unit& unit, const model::Pad& /*op*/) { remap_back(lowering, unit); }

}  // namespace orthant::schedule::ops
