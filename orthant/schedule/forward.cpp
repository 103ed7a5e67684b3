#include "orthant/base/checked.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/schedule/lowering.hpp"
#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::schedule {
namespace {

using model::Pass;
using Role = model::Parameter::Role;

constexpr model::Activation identity{};

}  // namespace

model::Pool whole_window(const tensor::Shape& src) {
  return {.kind = model::PoolKind::average, .window = {.size = tensor::spatial(src)}};
}

bool reads_own_output(const model::Graph& graph, const Unit& unit) {
  return model::traits_of(graph.nodes[static_cast<std::size_t>(unit.main)].op).backward_reads_dst ||
         activation_of(graph, unit).kind != model::ActivationKind::identity;
}

void Lowering::forward(const Unit& unit) {
  at(micro_->values, unit.out) = std::visit([&](const auto& op) { return forward(unit, op); }, node(unit.main).op);
}

NodeValue Lowering::dst(const Unit& unit) {
  NodeValue value{.own = {}, .stored = add_tensor(node(unit.out).name, at(at(micro_->stored, unit.out), rank_))};
  if (!tensor::is_empty(share(unit.out).owned)) value.own = part_of(value.stored, share(unit.out).owned);
  return value;
}

/// True if the only reader of a node's tensor may put something else into its memory, now or in backward.
bool Lowering::may_overwrite(int index) const {
  return at(micro_->values, index).own.owned && at(consumers_, index) == 1 &&
         !reads_own_output(graph_, at(units_, at(unit_of_, index)));
}

NodeValue Lowering::forward(const Unit& unit, const model::Input&) {
  NodeValue value = dst(unit);
  value.own.owned = value.stored.owned = false;
  value.filled = true;  // the loader brings the halo, too
  if (value.stored.buffer >= 0) at(schedule_.buffers, value.stored.buffer).persistent = true;
  schedule_.inputs.push_back(port(value.stored));
  return value;
}

/// The box of the mini-batch.
Port Lowering::port(const Value& value) const {
  Port result{.buffer = value.buffer, .box = value.box, .layout = value.layout};
  if (value.empty()) return {};
  result.box.lo.n += micro_->first_sample;
  result.box.hi.n += micro_->first_sample;
  return result;
}

/// Groups that lie on this rank.
std::int64_t Lowering::local_groups(const Unit& unit, std::int64_t groups) const {
  if (groups == 1) return 1;
  const tensor::Box& box = share(unit.main).computed;
  return (box.hi.c - box.lo.c) / (node(unit.main).shape.c / groups);
}

model::PoolTask Lowering::pool_task(const Unit& unit, const model::Pool& op, const Value& x, const Value& y) const {
  return {.kind = op.kind,
          .window = tensor::local_window(op.window, x.box, y.box),
          .count_include_pad = op.count_include_pad,
          .src = x.layout,
          .dst = y.layout,
          .global_src = tensor::spatial(node(unit.srcs[0]).shape),
          .first_src = tensor::spatial(x.box.lo)};
}

model::DropoutTask Lowering::dropout_task(const Unit& unit, const model::Dropout& op, const Value& from,
                                          const Value& to) const {
  return {.rate = op.rate,
          .layer = unit.main,
          .global = at(graph_.nodes, unit.main).shape,
          .box = port(from).box,
          .src = from.layout,
          .dst = to.layout};
}

/// Where a convolution or dense layer writes: dst, or a tensor of sums over some of the channels.
Value Lowering::contraction_dst(const Unit& unit, const NodeValue& y) {
  return sums_in_parts(unit) ? add_tensor(node(unit.main).name + ".partial", share(unit.main).computed) : y.own;
}

void Lowering::add_partial_sums(const Unit& unit, const Value& partial, const NodeValue& y) {
  const std::string name = node(unit.main).name + ".sum";
  Returning sum = give_back(name, Kind::gather, as_tensor(partial), partial_sums(unit.main));
  finish(std::move(sum.pending));
  if (y.own.empty()) return;
  const Value& from = sum.own;
  emit(unit.main, "keep", model::CopyTask{.src = from.layout, .dst = y.own.layout}, {from.buffer, y.own.buffer});
}

void Lowering::bias_and_activation(const Unit& unit, const Value& y, bool bias) {
  const model::Activation activation = activation_of(graph_, unit);
  if (y.empty() || (!bias && activation.kind == model::ActivationKind::identity)) return;
  const model::ActivationTask task{.activation = activation, .src = y.layout, .dst = y.layout};
  emit(unit.main, "bias_activation", task, {y.buffer, value_of(unit.main, Role::bias), y.buffer});
}

/// `make(x, y)` is the task between two boxes but for bias, activation and layouts.
template <class Make>
NodeValue Lowering::contract(const Unit& unit, bool bias, Make make) {
  const Tensor x = at(micro_->sources, unit.main) = fetch(unit);
  const NodeValue y = dst(unit);
  const Value out = contraction_dst(unit, y);
  const bool parts = sums_in_parts(unit);
  if (!out.empty()) {
    auto task = make(x.all.box, out.box);
    task.bias = bias && !parts;
    task.activation = parts ? identity : activation_of(graph_, unit);
    task.src = x.all.layout;
    task.dst = out.layout;
    emit(unit.main, "forward", task,
         {x.all.buffer, value_of(unit.main, Role::weight), parts ? -1 : value_of(unit.main, Role::bias), out.buffer});
  }
  if (parts) {
    add_partial_sums(unit, out, y);
    bias_and_activation(unit, y.own, bias);
  }
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Conv& op) {
  return contract(unit, op.bias, [&](const tensor::Box& src, const tensor::Box& dst) {
    return model::ConvTask{.window = tensor::local_window(op.window, src, dst),
                           .groups = local_groups(unit, op.groups)};
  });
}

NodeValue Lowering::forward(const Unit& unit, const model::Dense& op) {
  return contract(unit, op.bias, [](const tensor::Box&, const tensor::Box&) { return model::DenseTask{}; });
}

NodeValue Lowering::forward(const Unit& unit, const model::ConvTranspose& op) {
  const Tensor x = at(micro_->sources, unit.main) = fetch(unit);
  const NodeValue y = dst(unit);
  const Value out = contraction_dst(unit, y);
  if (!out.empty()) {
    const model::ConvTask task{.pass = Pass::backward_data,
                               .window = tensor::local_window(op.window, out.box, x.all.box),
                               .groups = local_groups(unit, op.groups),
                               .src = out.layout,
                               .dst = x.all.layout};
    emit(unit.main, "forward", task, {x.all.buffer, value_of(unit.main, Role::weight), out.buffer});
  }
  if (sums_in_parts(unit)) add_partial_sums(unit, out, y);
  bias_and_activation(unit, y.own, op.bias);
  return y;
}

/// Cuts dst cells into those that look at nothing but this rank's own cells of the source, and the rest.
Slabs Lowering::slabs_of(const Unit& unit, const model::Pool& op, tensor::Box box) const {
  const tensor::Box& own = at(micro_->values, unit.srcs[0]).own.box;
  const auto reads_own = [&](tensor::Dim dim, std::int64_t cell) {
    tensor::Box slab = box;
    slab.set(dim, {cell, cell + 1});
    const tensor::Range read =
        tensor::cells_read(op.window, slab, node(unit.srcs[0]).shape, node(unit.main).shape)[dim];
    return own[dim].lo <= read.lo && read.hi <= own[dim].hi;
  };
  Slabs slabs;
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const tensor::Range all = box[dim];
    tensor::Range inside = all;
    while (inside.lo < inside.hi && !reads_own(dim, inside.lo)) ++inside.lo;
    while (inside.lo < inside.hi && !reads_own(dim, inside.hi - 1)) --inside.hi;
    for (const tensor::Range rest : {tensor::Range{all.lo, inside.lo}, tensor::Range{inside.hi, all.hi}}) {
      tensor::Box slab = box;
      slab.set(dim, rest);
      slabs.edges.push_back(slab);
    }
    box.set(dim, inside);
  }
  slabs.own = box;
  return slabs;
}

/// Averages of this rank's own cells are taken while others travel. (Maxima are not: where they lie is one piece.)
NodeValue Lowering::forward(const Unit& unit, const model::Pool& op) {
  Fetching fetching = begin_fetch(unit);
  const Tensor x = at(micro_->sources, unit.main) = fetching.tensor;
  const NodeValue y = dst(unit);
  const tensor::Box& own = at(micro_->values, unit.srcs[0]).own.box;
  const auto has_all = [&](tensor::Dim dim) {
    return own[dim].lo <= y.own.box[dim].lo && y.own.box[dim].hi <= own[dim].hi;
  };
  const bool lacks_space_only = has_all(tensor::Dim::n) && has_all(tensor::Dim::c);
  const bool early = fetching.pending.exchange >= 0 && op.kind == model::PoolKind::average && lacks_space_only;
  const Slabs slabs = early ? slabs_of(unit, op, y.own.box) : Slabs{.own = y.own.box, .edges = {}};
  int& argmax = at(micro_->extra, unit.out);
  if (op.kind == model::PoolKind::max && !y.own.empty()) {
    const std::int64_t bytes = base::checked_mul(tensor::volume(y.own.box), model::argmax_bytes(op.window));
    argmax = add_buffer(node(unit.main).name + ".argmax", bytes);
  }
  const auto pool = [&](const char* what, const tensor::Box& box) {
    if (tensor::is_empty(box)) return;
    emit(unit.main, what, pool_task(unit, op, x.all, part_of(y.own, box)), {x.all.buffer, y.own.buffer, argmax});
  };
  if (!early) finish(std::move(fetching.pending));
  pool("forward", slabs.own);
  if (early) finish(std::move(fetching.pending));
  for (const tensor::Box& edge : slabs.edges) pool("forward_edge", edge);
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::GlobalAveragePool&) {
  return forward(unit, whole_window(node(unit.srcs[0]).shape));
}

NodeValue Lowering::forward(const Unit& unit, const model::BatchNorm& op) {
  const bool training = options_.mode == Mode::train;
  const bool has_residual = unit.add >= 0;
  const Tensor x = at(micro_->sources, unit.main) = fetch(unit);
  const Tensor residual = has_residual ? fetch(unit, 1) : Tensor{};
  const NodeValue y = dst(unit);
  const std::string& name = node(unit.main).name;
  const plan::StatisticsGroup group = plan::statistics_group(plan_, micro_->graph, unit.main, rank_);
  if (group.ranks.empty()) return y;

  const std::int64_t channels = channel_count(unit.main);
  int sums = -1;
  if (training) {
    const int mine = add_sums(name + ".sums", 2 * channels, group.ranks);
    if (y.own.empty()) {
      zero_doubles(unit.main, mine, 2 * channels);
    } else {
      emit(unit.main, "forward_sums", model::NormSumsTask{.x = x.all.layout}, {x.all.buffer, mine});
    }
    sums = add_up(name + ".statistics", Kind::statistics, mine, 2 * channels, group.ranks);
  }
  if (y.own.empty()) return y;
  int& saved = at(micro_->extra, unit.out);
  saved = add_buffer(name + ".saved", 2 * channels * static_cast<std::int64_t>(sizeof(float)));
  const model::NormTask task{.training = training,
                             .epsilon = op.epsilon,
                             .momentum = op.momentum,
                             .activation = activation_of(graph_, unit),
                             .residual = has_residual,
                             .statistics_count = group.pixels,
                             .x = x.all.layout,
                             .y = y.own.layout,
                             .residual_layout = has_residual ? residual.all.layout : tensor::as_other};
  emit(unit.main, "forward", task,
       {x.all.buffer, value_of(unit.main, Role::norm_weight), value_of(unit.main, Role::norm_bias),
        value_of(unit.main, Role::running_mean), value_of(unit.main, Role::running_var), sums, saved,
        residual.all.buffer, y.own.buffer});
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Activation& op) {
  const Tensor x = fetch(unit);
  const int source = unit.srcs[0];
  const bool same_box = share(unit.out).owned == share(source).owned &&
                        at(at(micro_->stored, unit.out), rank_) == at(at(micro_->stored, source), rank_);
  const bool over_src = same_box && !x.copied && !x.empty() && may_overwrite(source);
  NodeValue y = over_src ? at(micro_->values, source) : dst(unit);
  y.filled = false;
  if (y.own.empty()) return y;
  const model::ActivationTask task{.activation = op, .src = x.all.layout, .dst = y.own.layout};
  emit(unit.main, "forward", task, {x.all.buffer, -1, y.own.buffer});
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Softmax&) {
  const Tensor x = fetch(unit);
  const NodeValue y = dst(unit);
  if (y.own.empty()) return y;
  emit(unit.main, "forward", model::SoftmaxTask{.src = x.all.layout, .dst = y.own.layout},
       {x.all.buffer, y.own.buffer});
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Scale& op) {
  const Tensor x = fetch(unit);
  const NodeValue y = dst(unit);
  if (y.own.empty()) return y;
  const model::CopyTask task{.factor = op.factor, .src = x.all.layout, .dst = y.own.layout};
  emit(unit.main, "forward", task, {x.all.buffer, y.own.buffer});
  return y;
}

/// Nothing is done in evaluation, or without a rate: dst is src, unless its readers need room around it.
NodeValue Lowering::forward(const Unit& unit, const model::Dropout& op) {
  const Tensor x = fetch(unit);
  const bool keeps_all = options_.mode == Mode::evaluate || op.rate == 0;
  if (keeps_all && share(unit.out).owned == at(at(micro_->stored, unit.out), rank_)) {
    Value alias = x.all;
    alias.owned = false;
    return {.own = alias, .stored = alias};
  }
  const NodeValue y = dst(unit);
  if (y.own.empty()) return y;
  if (keeps_all) {
    emit(unit.main, "forward", model::CopyTask{.src = x.all.layout, .dst = y.own.layout}, {x.all.buffer, y.own.buffer});
  } else {
    emit(unit.main, "forward", dropout_task(unit, op, x.all, y.own), {x.all.buffer, y.own.buffer});
  }
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Add&) {
  std::vector<Value> terms;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) terms.push_back(fetch(unit, i).all);
  const NodeValue y = dst(unit);
  if (y.own.empty()) return y;
  Value sum = terms.front();
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const model::AddTask task{.a = sum.layout, .b = terms[i].layout, .dst = y.own.layout};
    emit(unit.main, "forward", task, {sum.buffer, terms[i].buffer, y.own.buffer});
    sum = y.own;
  }
  return y;
}

NodeValue Lowering::forward(const Unit& unit, const model::Concat&) {
  std::vector<Tensor> terms;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) terms.push_back(fetch(unit, i));
  const NodeValue y = dst(unit);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
    const Value& x = terms[i].all;
    if (!x.empty()) {
      const tensor::Layout into =
          tensor::channel_range(y.own.layout, first + x.box.lo.c - y.own.box.lo.c, x.box.hi.c - x.box.lo.c);
      emit(unit.main, "forward", model::CopyTask{.src = x.layout, .dst = into}, {x.buffer, y.own.buffer});
    }
    first += node(unit.srcs[i]).shape.c;
  }
  return y;
}

tensor::Layout unflattened(const Value& flat, const tensor::Shape& extents) {
  tensor::Layout layout = tensor::channels_first(extents);
  layout.strides.n = flat.layout.strides.n;
  layout.offset = flat.layout.offset;
  return layout;
}

NodeValue Lowering::forward(const Unit& unit, const model::Flatten&) {
  const Tensor x = at(micro_->sources, unit.main) = fetch(unit);
  const tensor::Box& owned = share(unit.out).owned;
  const tensor::Shape& from = x.all.layout.extents;
  const bool same_order = tensor::is_dense(x.all.layout) && (from.c == 1 || tensor::pixels(from) == from.n);
  if (!x.empty() && same_order && owned == at(at(micro_->stored, unit.out), rank_)) {
    Value alias{.buffer = x.all.buffer, .box = owned, .layout = {}, .owned = false};
    alias.layout = tensor::channels_last(tensor::extents_of(owned));
    alias.layout.offset = x.all.layout.offset;
    return {.own = alias, .stored = alias};
  }
  const NodeValue y = dst(unit);
  if (y.own.empty()) return y;
  emit(unit.main, "forward", model::CopyTask{.src = x.all.layout, .dst = unflattened(y.own, from)},
       {x.all.buffer, y.own.buffer});
  return y;
}

/// The ranks that share the output.
std::vector<int> Lowering::loss_ranks() const {
  const tensor::Distribution dst = plan::loss_distribution(plan_, graph_);
  std::vector<int> ranks(static_cast<std::size_t>(tensor::parts(dst.grid)));
  std::iota(ranks.begin(), ranks.end(), dst.first_rank);
  return ranks;
}

/// Ranks without a share of the output learn the loss from one that has.
void Lowering::spread_losses() {
  const std::vector<int> ranks = loss_ranks();
  std::vector<int> others;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) others.push_back(rank);
  }
  const bool knows = std::find(others.begin(), others.end(), rank_) == others.end();
  if (others.empty() || (knows && rank_ != ranks.front())) return;
  Exchange exchange{.name = "loss.spread", .kind = Kind::loss, .tag = bucket_tags() - 1, .sends = {}, .receives = {}};
  for (const int loss : schedule_.losses) {
    const std::int64_t bytes = at(schedule_.buffers, loss).bytes;
    if (!knows) exchange.receives.push_back({.peer = ranks.front(), .buffer = loss, .bytes = bytes});
    for (const int other : others) {
      if (knows) exchange.sends.push_back({.peer = other, .buffer = loss, .bytes = bytes});
    }
  }
  emit_finish(emit_start(std::move(exchange)));
}

/// The gradient of the loss is laid out as the output is: without gaps.
Value Lowering::dense_output(const Value& output) {
  if (output.empty() || tensor::is_dense(output.layout)) return output;
  const Value copy = add_tensor("output.dense", output.box);
  emit(current_node_, "gather_output", model::CopyTask{.src = output.layout, .dst = copy.layout},
       {output.buffer, copy.buffer});
  return copy;
}

void Lowering::loss() {
  const int last = static_cast<int>(graph_.nodes.size()) - 1;
  const NodeValue& value = at(micro_->values, last);
  const tensor::Traffic traffic = loss_traffic();
  schedule_.outputs.push_back(port(value.own));
  schedule_.labels = model::takes_labels(graph_.loss);
  const std::int64_t loss_bytes =
      (static_cast<std::int64_t>(graph_.loss.terms.size()) + 1) * static_cast<std::int64_t>(sizeof(double));
  schedule_.losses.push_back(add_buffer("loss", loss_bytes, true));
  const Tensor fetched = gather("output.for.loss", Kind::redistribution, value.own, traffic);
  if (!has_stages_) settle_sends();  // from here on gradients are written over what was sent
  const Value output = dense_output(fetched.all);

  Value target{.buffer = -1, .box = output.box, .layout = {}};
  if (!output.empty()) {
    if (schedule_.labels) target.box.set(tensor::Dim::c, {0, 1});
    target.layout = tensor::channels_last(tensor::extents_of(target.box));
    target.buffer = add_buffer("target", base::checked_mul(tensor::volume(target.box), 4), true);
  }
  schedule_.targets.push_back(port(target));
  const bool predicts = options_.mode == Mode::evaluate && options_.keep_output;
  if (predicts) schedule_.predictions.push_back(port(output));

  const std::vector<int> ranks = loss_ranks();
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return pass_to(last, {});
  const std::int64_t count = model::loss_sum_count(graph_.loss, node(last).shape.c);
  const int mine = add_sums("loss.sums", count, ranks);
  if (output.empty()) {
    zero_doubles(last, mine, count);
  } else {
    emit(last, "loss_sums", model::LossSumsTask{.loss = graph_.loss, .output = output.layout},
         {output.buffer, target.buffer, mine});
  }
  const int sums = add_up("loss.exchange", Kind::loss, mine, count, ranks);

  const bool train = options_.mode == Mode::train;
  const Unit& unit = at(units_, at(unit_of_, last));
  const bool writable = fetched.copied || (value.own.owned && !options_.keep_output && !reads_own_output(graph_, unit));
  Value diff{.buffer = -1, .box = {}, .layout = {}};
  if (train) diff = writable ? output : add_tensor("output.gradient", output.box);
  // A rank without pixels still learns the loss.
  const tensor::Layout nothing{.extents = {0, node(last).shape.c, 1, 1, 1}, .strides = {}, .offset = 0};
  emit(
      last, "loss",
      model::LossTask{
          .loss = graph_.loss, .global = graph_.nodes.back().shape, .output = output.empty() ? nothing : output.layout},
      {output.buffer, target.buffer, sums, diff.buffer, schedule_.losses.back()});
  if (!train) return;
  Returning back = give_back("output.gradient", Kind::redistribution, as_tensor(diff), traffic);
  finish(std::move(back.pending));
  pass_to(last, back.own);
}

}  // namespace orthant::schedule
