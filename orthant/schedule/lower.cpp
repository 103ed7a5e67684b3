#include "orthant/model/traits.hpp"
#include "orthant/schedule/lowering.hpp"
#include "orthant/schedule/ops/ops.hpp"

#include <algorithm>

namespace orthant::schedule {

bool reads_own_output(const model::Graph& graph, const Unit& unit) {
  const model::ActivationKind kind = activation_of(graph, unit).kind;
  return model::traits_of(graph.nodes[static_cast<std::size_t>(unit.main)].op).backward_reads_dst ||
         (kind != model::ActivationKind::identity && !model::derivative_reads_src(kind));
}

Lowering::Lowering(const Analysis& analysis, int rank, const LowerOptions& options)
    : analysis_(analysis),
      rank_(rank),
      options_(options),
      emitter_(analysis, options_, schedule_),
      exchanges_(emitter_, schedule_,
                 {.rank = rank,
                  .has_stages = analysis.has_stages(),
                  .forms = analysis.plan().exchanges,
                  .machines = options.machines}),
      parameters_(analysis, rank, options_, emitter_, exchanges_, schedule_),
      tags_(tags_of(analysis)) {
  const std::size_t nodes = analysis.graph().nodes.size();
  for (std::size_t i = 0; i < analysis.micro_batches().size(); ++i) {
    states_.push_back({.values = std::vector<NodeValue>(nodes),
                       .sources = std::vector<Tensor>(nodes),
                       .gates = std::vector<Tensor>(nodes),
                       .extra = std::vector<int>(nodes, -1),
                       .gradients = std::vector<std::vector<Value>>(nodes),
                       .activation_undone = std::vector<bool>(nodes)});
  }
}

Schedule Lowering::run() {
  for (const StagePass& pass : passes_of(analysis_.plan(), rank_, options_.mode)) {
    enter(at(analysis_.micro_batches(), pass.micro_batch));
    state_ = &at(states_, pass.micro_batch);
    exchanges_.set_micro_batch(pass.micro_batch);
    emitter_.set_phase(pass.phase);
    pass.phase == Phase::forward ? forward_pass(pass) : backward_pass(pass);
  }
  emitter_.set_phase(Phase::update);
  parameters_.finish();
  ops::spread_losses(*this, tags_.losses());
  exchanges_.settle_sends();
  emitter_.find_lifetimes(kept_buffers());
  return std::move(schedule_);
}

void Lowering::enter(const MicroBatch& micro_batch) {
  micro_batch_ = &micro_batch;
  const auto [entry, is_new] = own_of_.try_emplace(micro_batch.geometry);
  own_ = &entry->second;
  if (!is_new) return;
  for (int i = 0; i < static_cast<int>(geometry().cuts.size()); ++i) {
    entry->second.shares.push_back(at(geometry().cuts, i).share(rank_));
    entry->second.stored.push_back(Analysis::stored_box(geometry(), i, rank_));
  }
}

/// True if the node is of one of the pass's stages.
bool Lowering::is_in(const StagePass& pass, int index) const {
  const int stage = planned(index).stage;
  return stage >= pass.first_stage && stage < pass.end_stage;
}

void Lowering::forward_pass(const StagePass& pass) {
  for (int i = 0; i < static_cast<int>(analysis_.units().size()); ++i) {
    const Unit& unit = at(analysis_.units(), i);
    if (!is_in(pass, unit.main)) continue;
    exchanges_.set_tag(tags_.forward(pass.micro_batch, i));
    emitter_.set_node(unit.main);
    value(unit.out) = std::visit([&](const auto& op) { return ops::forward(*this, unit, op); }, node(unit.main).op);
  }
  if (is_in(pass, static_cast<int>(analysis_.graph().nodes.size()) - 1)) ops::loss(*this);
}

void Lowering::backward_pass(const StagePass& pass) {
  exchanges_.settle_forward_sends();
  std::vector<int> complete;  // units whose gradients have not been reduced yet
  const auto reduce = [&] {
    if (micro_batch_ == &analysis_.micro_batches().back())
      std::for_each(complete.begin(), complete.end(), [&](int unit) { parameters_.reduce(unit); });
    complete.clear();
  };
  for (int i = static_cast<int>(analysis_.units().size()) - 1; i >= 0; --i) {
    const Unit& unit = at(analysis_.units(), i);
    if (!is_in(pass, unit.main)) continue;
    exchanges_.set_tag(tags_.backward(pass.micro_batch, i));
    emitter_.set_node(unit.main);
    if (needs_gradient(unit.out) && !at(state_->gradients, unit.out).empty())
      std::visit([&](const auto& op) { ops::backward(*this, unit, op); }, node(unit.main).op);
    complete.push_back(i);
    if (!emitter_.has_deferred()) reduce();
  }
  emitter_.emit_deferred();
  reduce();
}

std::vector<int> Lowering::kept_buffers() const {
  std::vector<int> kept;
  if (!options_.keep_output) return kept;
  for (const auto* ports : {&schedule_.outputs, &schedule_.predictions}) {
    for (const Port& output : *ports) {
      if (output.buffer >= 0) kept.push_back(output.buffer);
    }
  }
  return kept;
}

Schedule lower(const Analysis& analysis, int rank, const LowerOptions& options) {
  return Lowering(analysis, rank, options).run();
}

Schedule lower(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options) {
  return lower(Analysis(graph, plan, options.input_gradient), rank, options);
}

}  // namespace orthant::schedule
