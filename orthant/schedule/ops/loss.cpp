#include "orthant/base/checked.hpp"
#include "orthant/schedule/loss_tree.hpp"
#include "orthant/schedule/ops/ops.hpp"

#include <utility>

namespace orthant::schedule::ops {
namespace {

/// The gradient of the loss is laid out as the output is: without gaps.
Value dense_output(Lowering& lowering, const Value& output) {
  if (output.empty() || tensor::is_dense(output.layout)) return output;
  const Value copy = lowering.emitter().add_tensor("output.dense", output.box);
  lowering.emitter().copy(lowering.emitter().node(), "copy_output", output, copy);
  return copy;
}

/// Where the loader puts the target of what this rank has of the output.
Value add_target(Lowering& lowering, const Value& output, bool labels) {
  Value target{.buffer = -1, .box = output.box, .layout = {}};
  if (output.empty()) return target;
  if (labels) target.box.set(tensor::Dim::c, {0, 1});
  target.layout = tensor::channels_last(tensor::extents_of(target.box));
  target.buffer = lowering.emitter().add_buffer("target", base::checked_mul(tensor::volume(target.box), 4), true);
  return target;
}

/// What the loss needs of all pixels, summed over the ranks that have them.
int sums_of(Lowering& lowering, int last, const Value& output, const Value& target, const tensor::RankGroup& ranks) {
  const model::Graph& graph = lowering.analysis().graph();
  const std::int64_t count = model::loss_sum_count(graph.loss, lowering.node(last).shape.c);
  Sums sums = lowering.exchanges().prepare_sums("loss.sums", count, ranks);
  if (output.empty()) {
    lowering.zero_doubles(last, sums.mine, count);
  } else {
    lowering.emitter().emit(last, "loss_sums", model::LossSumsTask{.loss = graph.loss, .output = output.layout},
                            {output.buffer, target.buffer, sums.mine});
  }
  return lowering.exchanges().sum_up("loss.exchange", Kind::loss, std::move(sums));
}

}  // namespace

void loss(Lowering& lowering) {
  const Analysis& analysis = lowering.analysis();
  const model::Graph& graph = analysis.graph();
  const int last = static_cast<int>(graph.nodes.size()) - 1;
  const NodeValue& value = lowering.value(last);
  const Route route = lowering.exchanges().route(Analysis::loss_reading(lowering.geometry()));
  Schedule& schedule = lowering.schedule();
  Emitter& emitter = lowering.emitter();
  schedule.outputs.push_back(lowering.port(value.own));
  schedule.labels = model::takes_labels(graph.loss);
  const std::int64_t loss_bytes =
      (static_cast<std::int64_t>(graph.loss.terms.size()) + 1) * static_cast<std::int64_t>(sizeof(double));
  schedule.losses.push_back(emitter.add_buffer("loss", loss_bytes, true));
  const Tensor fetched = lowering.exchanges().collect("output.for.loss", Kind::redistribution, value.own, route);
  // From here on gradients are written over what was sent.
  if (!analysis.has_stages()) lowering.exchanges().settle_sends();
  const Value output = dense_output(lowering, fetched.all);
  const Value target = add_target(lowering, output, schedule.labels);
  schedule.targets.push_back(lowering.port(target));
  if (!lowering.trains() && lowering.options().keep_output) schedule.predictions.push_back(lowering.port(output));

  const tensor::RankGroup ranks = analysis.loss_ranks();
  if (!ranks.contains(lowering.rank())) return lowering.pass_to(last, {});
  const int sums = sums_of(lowering, last, output, target, ranks);

  const bool writable = fetched.copied || (value.own.owned && !lowering.options().keep_output &&
                                           !reads_own_output(graph, analysis.producer(last)));
  Value diff{.buffer = -1, .box = {}, .layout = {}};
  if (lowering.trains()) diff = writable ? output : emitter.add_tensor("output.gradient", output.box);
  // A rank without pixels still learns the loss.
  const tensor::Layout nothing{.extents = {0, lowering.node(last).shape.c, 1, 1, 1}, .strides = {}, .offset = 0};
  const model::LossTask task{
      .loss = graph.loss, .global = graph.nodes.back().shape, .output = output.empty() ? nothing : output.layout};
  emitter.emit(last, "loss", task, {output.buffer, target.buffer, sums, diff.buffer, schedule.losses.back()});
  if (!lowering.trains()) return;
  Returning back = lowering.exchanges().give_back("output.gradient", Kind::redistribution, as_tensor(diff), route);
  lowering.exchanges().finish(std::move(back.pending));
  lowering.pass_to(last, back.own);
}

/// Those who know the losses are consecutive ranks, of which the first tells the others. All but a few members of the
/// tree do one of two things, so that there are few classes of ranks.
void spread_losses(Lowering& lowering, int tag) {
  const tensor::RankGroup knowing = lowering.analysis().loss_ranks();
  const int count =
      lowering.analysis().plan().ranks - knowing.size();  // others; members are these and, as 0, the first
  const int first = knowing.front();
  const auto rank_of = [&](int member) {
    if (member == 0) return first;
    return member <= first ? member - 1 : member - 1 + knowing.size();
  };
  const int rank = lowering.rank();
  if (count == 0 || (knowing.contains(rank) && rank != first)) return;
  const int member = rank == first ? 0 : rank < first ? rank + 1 : rank + 1 - knowing.size();
  std::vector<Round> rounds;
  const auto add_round = [&] { return &rounds.emplace_back(); };
  const auto messages = [&](int peer) {
    std::vector<Message> list;
    for (const int loss : lowering.schedule().losses)
      list.push_back({.peer = rank_of(peer), .buffer = loss, .bytes = lowering.emitter().buffer(loss).bytes});
    return list;
  };
  if (member > 0) add_round()->receives = messages(LossTree::parent(member));
  Round sending;
  const tensor::Range children = LossTree::children(member, count);
  for (auto child = static_cast<int>(children.lo); child < children.hi; ++child) {
    for (const Message& message : messages(child)) sending.sends.push_back(message);
  }
  if (!sending.sends.empty()) *add_round() = std::move(sending);
  lowering.exchanges().set_tag(tag);
  lowering.exchanges().finish(lowering.exchanges().start("loss.spread", Kind::loss, std::move(rounds)));
}

}  // namespace orthant::schedule::ops
