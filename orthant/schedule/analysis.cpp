#include "orthant/schedule/analysis.hpp"

#include "orthant/model/traits.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::schedule {
namespace {

using tensor::Box;
using Boxes = std::vector<Box>;

Boxes one_box(const Box& box) { return tensor::is_empty(box) ? Boxes{} : Boxes{box}; }

/// Returns its argument only if the plan fits: members are made from it in order.
const plan::Plan& verified(const plan::Plan& plan, const model::Graph& graph) {
  plan::verify(plan, graph);
  return plan;
}

}  // namespace

Analysis::Analysis(const model::Graph& graph, const plan::Plan& plan, bool input_gradient)
    : graph_(graph),
      plan_(verified(plan, graph)),
      units_(fuse(graph, plan)),
      unit_of_(graph.nodes.size(), -1),
      readers_(consumer_counts(graph)),
      has_stages_(std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const auto& node) { return node.stage > 0; })) {
  for (std::size_t i = 0; i < units_.size(); ++i) at(unit_of_, units_[i].out) = static_cast<int>(i);
  mark_gradients(input_gradient);
  for (int i = 0; i < plan.micro_batches; ++i) micro_batches_.push_back(make_micro_batch(i));
}

void Analysis::mark_gradients(bool input_gradient) {
  needs_gradient_.assign(graph_.nodes.size(), false);
  for (const model::Parameter& parameter : model::parameters(graph_)) {
    if (parameter.trainable) needs_gradient_[static_cast<std::size_t>(parameter.node)] = true;
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].srcs.empty()) needs_gradient_[i] = input_gradient;
    for (const int src : graph_.nodes[i].srcs) {
      if (needs_gradient(src)) needs_gradient_[i] = true;
    }
  }
}

MicroBatch Analysis::make_micro_batch(int index) const {
  const std::int64_t samples = graph_.nodes.front().shape.n;
  MicroBatch micro_batch{
      .index = index, .graph = graph_, .first_sample = tensor::block_begin(samples, plan_.micro_batches, index)};
  const std::int64_t end = tensor::block_begin(samples, plan_.micro_batches, index + 1);
  for (model::Node& node : micro_batch.graph.nodes) node.shape.n = end - micro_batch.first_sample;
  for (int node = 0; node < static_cast<int>(graph_.nodes.size()); ++node) {
    std::vector<plan::Share> shares;
    shares.reserve(static_cast<std::size_t>(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank)
      shares.push_back(plan::share_of(plan_, micro_batch.graph, node, rank));
    micro_batch.shares.push_back(std::move(shares));
  }
  find_storage(micro_batch);
  return micro_batch;
}

/// True if on every rank what the unit reads of a source may lie in one buffer with what the rank owns of it: the
/// box around both has little else. This holds for halos and gathered channels, not for other cuts of the tensor.
bool Analysis::fits_in_place(const MicroBatch& micro_batch, const Unit& unit, std::size_t source) const {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const Box& owned = at(at(micro_batch.shares, unit.srcs[source]), rank).owned;
    const auto& wanted = at(at(micro_batch.shares, unit.main), rank).sources[source];
    if (wanted.size() > 1) return false;
    if (wanted.empty()) continue;
    const std::int64_t common = tensor::volume(tensor::intersection(owned, wanted.front()));
    const std::int64_t both = tensor::volume(owned) + tensor::volume(wanted.front()) - common;
    if (4 * tensor::volume(tensor::bounding(owned, wanted.front())) > 5 * both) return false;
  }
  return true;
}

/// Finds the box each rank keeps of each node's dst: what it owns and, around it, what readers want of others. That
/// arrives once for all readers, so only those of one pipeline stage may read in place: ranks of a later stage would
/// wait for it before the pass in which the others send it.
void Analysis::find_storage(MicroBatch& micro_batch) const {
  for (const auto& shares : micro_batch.shares) {
    Boxes boxes;
    boxes.reserve(shares.size());
    for (const plan::Share& share : shares) boxes.push_back(share.owned);
    micro_batch.stored.push_back(std::move(boxes));
    micro_batch.filled.emplace_back(shares.size());
    micro_batch.in_place.emplace_back();
  }
  std::vector<int> stage_of_readers(graph_.nodes.size(), -1);
  for (const Unit& unit : units_) {
    for (std::size_t i = 0; i < at(graph_.nodes, unit.main).srcs.size(); ++i) {
      int& stage = at(stage_of_readers, unit.srcs[i]);
      const bool fits = (stage < 0 || stage == planned(unit.main).stage) && fits_in_place(micro_batch, unit, i);
      at(micro_batch.in_place, unit.main).push_back(fits);
      if (!fits) continue;
      stage = planned(unit.main).stage;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        const auto& wanted = at(at(micro_batch.shares, unit.main), rank).sources[i];
        if (wanted.empty()) continue;
        Box& stored = at(at(micro_batch.stored, unit.srcs[i]), rank);
        Box& filled = at(at(micro_batch.filled, unit.srcs[i]), rank);
        stored = tensor::bounding(stored, wanted.front());
        filled = tensor::bounding(filled, wanted.front());
      }
    }
  }
}

tensor::Redistribution Analysis::reading(const MicroBatch& micro_batch, const Unit& unit, std::size_t source) const {
  const auto& held = at(micro_batch.shares, unit.srcs[source]);
  const auto& readers = at(micro_batch.shares, unit.main);
  // The residual of a fused sum is read where the sum is.
  const bool residual = is_residual(unit, source);
  return {.ranks = plan_.ranks,
          .held = [&held](int rank) { return at(held, rank).owned; },
          .wanted =
              [&readers, source, residual](int rank) {
                const plan::Share& share = at(readers, rank);
                return residual ? one_box(share.owned) : share.sources[source];
              }};
}

tensor::Redistribution Analysis::filling(const MicroBatch& micro_batch, int node) const {
  const auto& held = at(micro_batch.shares, node);
  const auto& filled = at(micro_batch.filled, node);
  return {.ranks = plan_.ranks,
          .held = [&held](int rank) { return at(held, rank).owned; },
          .wanted = [&filled](int rank) { return one_box(at(filled, rank)); }};
}

tensor::Redistribution Analysis::partial_sums(const MicroBatch& micro_batch, int node) const {
  const auto& shares = at(micro_batch.shares, node);
  return {.ranks = plan_.ranks,
          .held = [&shares](int rank) { return at(shares, rank).owned; },
          .wanted = [&shares](int rank) { return one_box(at(shares, rank).computed); }};
}

tensor::Redistribution Analysis::loss_reading(const MicroBatch& micro_batch) const {
  const auto& shares = micro_batch.shares.back();
  return {.ranks = plan_.ranks,
          .held = [&shares](int rank) { return at(shares, rank).owned; },
          .wanted = [wanted = plan::loss_distribution(plan_, micro_batch.graph)](
                        int rank) { return one_box(tensor::owned_box(wanted, rank)); }};
}

bool Analysis::is_local(const MicroBatch& micro_batch, const Unit& unit, std::size_t source) const {
  const tensor::Redistribution boxes = reading(micro_batch, unit, source);
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    if (boxes.wanted(rank) != one_box(boxes.held(rank))) return false;
  }
  return true;
}

Kind Analysis::kind_of(const Unit& unit, std::size_t source) const {
  const plan::NodePlan& reader = planned(unit.main);
  const plan::NodePlan& held = planned(unit.srcs[source]);
  if (reader.first_rank != held.first_rank || tensor::parts(reader.grid) != tensor::parts(held.grid))
    return Kind::redistribution;
  if (model::traits_of(at(graph_.nodes, unit.main).op).contraction && reader.grid.c > 1) return Kind::gather;
  return reader.grid == held.grid ? Kind::halo : Kind::redistribution;
}

std::vector<int> Analysis::loss_ranks() const {
  const tensor::Distribution dst = plan::loss_distribution(plan_, graph_);
  std::vector<int> ranks(static_cast<std::size_t>(tensor::parts(dst.grid)));
  std::iota(ranks.begin(), ranks.end(), dst.first_rank);
  return ranks;
}

}  // namespace orthant::schedule
