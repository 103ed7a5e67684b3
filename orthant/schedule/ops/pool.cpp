#include "orthant/base/checked.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/schedule/ops/ops.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <string>
#include <utility>

namespace orthant::schedule::ops {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;

/// Cells of a dst: those that need nothing of other ranks, and the others.
struct Slabs {
  Box own;
  std::vector<Box> edges{};  ///< some may be empty
};

/// True if whoever owns dst has all cells.
bool pools_alone(const Lowering& lowering, const Unit& unit) {
  return tensor::is_local(Analysis::partial_sums(lowering.geometry(), unit.main));
}

/// The place of this rank's maxima among those of all parts.
Box own_peaks(Lowering& lowering, const Unit& unit) {
  if (!pools_alone(lowering, unit)) return lowering.peaks_route(unit.main).owned;
  Box box = lowering.share(unit.main).computed;
  box.hi.w = box.lo.w + model::peak_numbers;
  return box;
}

/// This rank's share of the means over all space: a window as large as that, of which it has some cells.
model::PoolTask share_task(const Lowering& lowering, const Unit& unit, model::Pass pass, const tensor::Layout& src,
                           const tensor::Layout& dst) {
  return {.pass = pass,
          .kind = model::PoolKind::average,
          .window = {.size = tensor::spatial(lowering.node(unit.srcs[0]).shape)},
          .src = src,
          .dst = dst};
}

model::PoolTask pool_task(const Lowering& lowering, const Unit& unit, const model::Pool& op, const Value& x,
                          const Value& y) {
  return {.kind = op.kind,
          .window = tensor::local_window(op.window, x.box, y.box),
          .count_include_pad = op.count_include_pad,
          .src = x.layout,
          .dst = y.layout,
          .global_src = tensor::spatial(lowering.node(unit.srcs[0]).shape),
          .first_src = tensor::spatial(x.box.lo)};
}

/// Cuts dst cells into those that look at nothing but this rank's own cells of the source, and the rest.
Slabs slabs_of(Lowering& lowering, const Unit& unit, const model::Pool& op, Box box) {
  const Box& own = lowering.value(unit.srcs[0]).own.box;
  const auto reads_own = [&](Dim dim, std::int64_t cell) {
    Box slab = box;
    slab.set(dim, {cell, cell + 1});
    const Range read =
        tensor::cells_read(op.window, slab, lowering.node(unit.srcs[0]).shape, lowering.node(unit.main).shape)[dim];
    return own[dim].lo <= read.lo && read.hi <= own[dim].hi;
  };
  Slabs slabs;
  for (const Dim dim : tensor::spatial_dims) {
    const Range all = box[dim];
    Range inside = all;
    while (inside.lo < inside.hi && !reads_own(dim, inside.lo)) ++inside.lo;
    while (inside.lo < inside.hi && !reads_own(dim, inside.hi - 1)) --inside.hi;
    for (const Range rest : {Range{all.lo, inside.lo}, Range{inside.hi, all.hi}}) {
      Box slab = box;
      slab.set(dim, rest);
      slabs.edges.push_back(slab);
    }
    box.set(dim, inside);
  }
  slabs.own = box;
  return slabs;
}

/// True if this rank has the samples and channels of `y` and lacks only cells at the edges.
bool lacks_space_only(const Box& own, const Box& y) {
  const auto has_all = [&](Dim dim) { return own[dim].lo <= y[dim].lo && y[dim].hi <= own[dim].hi; };
  return has_all(Dim::n) && has_all(Dim::c);
}

}  // namespace

/// Averages over this rank's own cells are computed while the cells of others travel. Maxima are not, because the
/// positions of the maxima are one dense tensor, which cannot be written slab by slab.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::Pool& op) {
  Fetching fetching = lowering.begin_fetch(unit);
  const Tensor x = lowering.source(unit) = fetching.tensor;
  const NodeValue y = lowering.add_dst(unit);
  const bool early = fetching.pending.exchange >= 0 && op.kind == model::PoolKind::average &&
                     lacks_space_only(lowering.value(unit.srcs[0]).own.box, y.own.box);
  const Slabs slabs = early ? slabs_of(lowering, unit, op, y.own.box) : Slabs{.own = y.own.box};
  int& argmax = lowering.extra(unit);
  if (op.kind == model::PoolKind::max && !y.own.empty()) {
    const std::int64_t bytes = base::checked_mul(tensor::volume(y.own.box), model::argmax_bytes(op.window));
    argmax = lowering.emitter().add_buffer(lowering.node(unit.main).name + ".argmax", bytes);
  }
  const auto pool = [&](const char* what, const Box& box) {
    if (tensor::is_empty(box)) return;
    lowering.emitter().emit(unit.main, what, pool_task(lowering, unit, op, x.all, part_of(y.own, box)),
                            {x.all.buffer, y.own.buffer, argmax});
  };
  if (!early) lowering.exchanges().finish(std::move(fetching.pending));
  pool("forward", slabs.own);
  if (early) lowering.exchanges().finish(std::move(fetching.pending));
  for (const Box& edge : slabs.edges) pool("forward_edge", edge);
  return y;
}

/// Every rank's share of the means goes to those who own them.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::GlobalAveragePool& /*op*/) {
  const tensor::Redistribution shares = Analysis::partial_sums(lowering.geometry(), unit.main);
  const bool alone = tensor::is_local(shares);
  const std::string& name = lowering.node(unit.main).name;
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  const Value share =
      alone ? y.own : lowering.emitter().add_tensor(name + ".share", lowering.share(unit.main).computed);
  if (!share.empty()) {
    lowering.emitter().emit(unit.main, "forward",
                            share_task(lowering, unit, model::Pass::forward, x.all.layout, share.layout),
                            {x.all.buffer, share.buffer, -1});
  }
  if (alone) return y;
  Returning sums = lowering.exchanges().give_back(name + ".shares", Kind::redistribution, as_tensor(share),
                                                  lowering.partial_sums_route(unit.main));
  lowering.exchanges().finish(std::move(sums.pending));
  if (!y.own.empty()) lowering.emitter().copy(unit.main, "keep", sums.own, y.own);
  return y;
}

/// Every rank finds the maxima of the cells that it has, and those who own dst the largest of them.
NodeValue forward(Lowering& lowering, const Unit& unit, const model::GlobalMaxPool& /*op*/) {
  const Tensor x = lowering.source(unit) = lowering.fetch(unit);
  const NodeValue y = lowering.add_dst(unit);
  const std::string& name = lowering.node(unit.main).name;
  Emitter& emitter = lowering.emitter();
  Value own;
  if (!x.empty()) {
    own = emitter.add_tensor(name + ".peaks", own_peaks(lowering, unit));
    emitter.emit(unit.main, "forward",
                 model::PeaksTask{.global_src = tensor::spatial(lowering.node(unit.srcs[0]).shape),
                                  .first_src = tensor::spatial(x.all.box.lo),
                                  .src = x.all.layout,
                                  .dst = own.layout},
                 {x.all.buffer, own.buffer});
  }
  lowering.extra(unit) = own.buffer;
  Tensor& all = lowering.gate(unit) =
      pools_alone(lowering, unit)
          ? as_tensor(own)
          : lowering.exchanges().collect(name + ".peaks.all", Kind::redistribution, own, lowering.peaks_route(unit.main));
  if (!y.own.empty())
    emitter.emit(unit.main, "highest", model::HighestPeakTask{.src = all.all.layout, .dst = y.own.layout},
                 {all.all.buffer, y.own.buffer});
  return y;
}

/// Where only this pooling reads an activation's result, its gradient goes through the activation in the same
/// pass and is written over that result: over that of others' cells in the halo, too, before it returns to them.
/// Normalisations take their gradient through the activation themselves.
void backward(Lowering& lowering, const Unit& unit, const model::Pool& op) {
  const int source = unit.srcs[0];
  const Unit& producer = lowering.analysis().producer(source);
  const Tensor& x = lowering.source(unit);
  const model::Activation activation = lowering.activation(producer);
  const bool through = activation.kind != model::ActivationKind::identity &&
                       !model::derivative_reads_src(activation.kind) &&
                       at(lowering.geometry().in_place, unit.main)[0] &&
                       !model::has_statistics(model::traits_of(lowering.node(producer.main).op)) &&
                       lowering.analysis().reader_count(source) == 1 && lowering.value(source).stored.owned;
  const Value diff = lowering.take_gradient(unit.out);
  if (through) at(lowering.activation_undone(), source) = true;
  const Tensor diff_x = through ? x : lowering.add_diff_src(unit);
  if (!diff.empty()) {
    model::PoolTask task =
        pool_task(lowering, unit, op, {.buffer = -1, .box = x.all.box, .layout = diff_x.all.layout}, diff);
    task.pass = model::Pass::backward_data;
    if (through) task.activation = activation;
    lowering.emitter().emit(unit.main, "backward_data", task,
                            {diff.buffer, lowering.extra(unit), through ? x.all.buffer : -1, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
}

/// The gradient of the means goes to all who have cells: every cell's is the same.
void backward(Lowering& lowering, const Unit& unit, const model::GlobalAveragePool& /*op*/) {
  const Value own = lowering.take_gradient(unit.out);
  const Tensor diff = lowering.exchanges().collect(lowering.node(unit.main).name + ".gradient.shares",
                                                   Kind::redistribution, own, lowering.partial_sums_route(unit.main));
  const Tensor diff_x = lowering.add_diff_src(unit);
  if (!diff.empty() && !diff_x.empty()) {
    const model::PoolTask task =
        share_task(lowering, unit, model::Pass::backward_data, diff_x.all.layout, diff.all.layout);
    lowering.emitter().emit(unit.main, "backward_data", task, {diff.all.buffer, -1, -1, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
}

/// The gradient goes to the part that has the maximum, and there to its cell.
void backward(Lowering& lowering, const Unit& unit, const model::GlobalMaxPool& /*op*/) {
  const Value diff = lowering.take_gradient(unit.out);
  const std::string name = lowering.node(unit.main).name + ".gradient.peaks";
  Emitter& emitter = lowering.emitter();
  const Tensor& all = lowering.gate(unit);
  Tensor diff_all;
  if (!diff.empty()) {
    diff_all = emitter.add_tensor(name, std::vector<Box>{all.all.box});
    emitter.emit(unit.main, "backward_highest",
                 model::HighestPeakTask{.pass = model::Pass::backward_data,
                                        .src = all.all.layout,
                                        .dst = diff.layout,
                                        .diff_src = diff_all.all.layout},
                 {diff.buffer, all.all.buffer, diff_all.all.buffer});
  }
  Value diff_own = diff_all.all;
  if (!pools_alone(lowering, unit)) {
    Returning back = lowering.exchanges().give_back(name, Kind::redistribution, diff_all,
                                                    lowering.peaks_route(unit.main));
    lowering.exchanges().finish(std::move(back.pending));
    diff_own = back.own;
  }
  Tensor diff_x;
  if (!lowering.source(unit).empty()) {
    diff_x = lowering.add_diff_src(unit);
    Value peaks{.buffer = lowering.extra(unit), .box = own_peaks(lowering, unit), .layout = {}};
    peaks.layout = tensor::channels_last(tensor::extents_of(peaks.box));
    emitter.emit(unit.main, "backward_data",
                 model::PeaksTask{.pass = model::Pass::backward_data,
                                  .global_src = tensor::spatial(lowering.node(unit.srcs[0]).shape),
                                  .first_src = tensor::spatial(lowering.source(unit).all.box.lo),
                                  .src = diff_x.all.layout,
                                  .dst = peaks.layout,
                                  .diff_dst = diff_own.layout},
                 {diff_own.buffer, peaks.buffer, diff_x.all.buffer});
  }
  lowering.pass_back(unit, 0, diff_x);
}

}  // namespace orthant::schedule::ops
