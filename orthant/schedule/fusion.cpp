#include "orthant/schedule/fusion.hpp"

#include "orthant/model/traits.hpp"

#include <algorithm>

namespace orthant::schedule {
namespace {

using model::Graph;
using model::Node;

/// The only reader of `node`, or -1.
int sole_consumer(const std::vector<std::vector<int>>& consumers, int node) {
  const auto& readers = consumers[static_cast<std::size_t>(node)];
  return readers.size() == 1 ? readers.front() : -1;
}

std::vector<std::vector<int>> consumers_of(const Graph& graph) {
  std::vector<std::vector<int>> consumers(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int src : graph.nodes[i].srcs) consumers[static_cast<std::size_t>(src)].push_back(static_cast<int>(i));
  }
  return consumers;
}

/// True if every rank owns the same box of both nodes' dsts.
bool same_cut(const Graph& graph, const plan::Plan& plan, int a, int b) {
  const plan::NodePlan& first = plan.nodes[static_cast<std::size_t>(a)];
  const plan::NodePlan& second = plan.nodes[static_cast<std::size_t>(b)];
  if (first.grid != second.grid || first.first_rank != second.first_rank || first.stage != second.stage) return false;
  const std::int64_t channels = graph.nodes[static_cast<std::size_t>(a)].shape.c;
  if (first.grid.c == 1) return channels == graph.nodes[static_cast<std::size_t>(b)].shape.c;
  const tensor::Distribution one = plan::distribution(plan, graph, a);
  const tensor::Distribution other = plan::distribution(plan, graph, b);
  for (int part = 0; part < first.grid.c; ++part) {
    if (tensor::block(one, tensor::Dim::c, part) != tensor::block(other, tensor::Dim::c, part)) return false;
  }
  return true;
}

/// True if the unit's kernel can end with the activation. Those of convolutions know a few, and others would keep them
/// from their fastest algorithms. A derivative that is taken from src finds it in what a normalisation keeps, unless a
/// residual was added.
bool takes(const Unit& unit, const model::OpTraits& traits, const model::Activation& activation) {
  using model::ActivationKind;
  if (model::has_statistics(traits)) return unit.add < 0 || !model::derivative_reads_src(activation.kind);
  switch (activation.kind) {
    case ActivationKind::identity:
    case ActivationKind::relu:
    case ActivationKind::leaky_relu:
    case ActivationKind::tanh:
    case ActivationKind::sigmoid: return true;
    case ActivationKind::relu6:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::elu:
    case ActivationKind::silu:
    case ActivationKind::gelu:
    case ActivationKind::hard_swish: return false;
  }
  return false;
}

/// Extends a unit by what can ride on its kernel.
void grow(Unit& unit, const Graph& graph, const plan::Plan& plan, const std::vector<std::vector<int>>& consumers,
          std::vector<bool>& taken) {
  const auto node = [&](int i) -> const Node& { return graph.nodes[static_cast<std::size_t>(i)]; };
  const model::OpTraits traits = model::traits_of(node(unit.main).op);

  int next = sole_consumer(consumers, unit.out);
  if (next >= 0 && traits.takes_residual && std::holds_alternative<model::Add>(node(next).op) &&
      node(next).srcs.size() == 2 && !taken[static_cast<std::size_t>(next)] && same_cut(graph, plan, unit.main, next)) {
    const auto& srcs = node(next).srcs;
    unit.add = unit.out = next;
    unit.srcs.push_back(srcs[0] == unit.main ? srcs[1] : srcs[0]);
    taken[static_cast<std::size_t>(next)] = true;
    next = sole_consumer(consumers, unit.out);
  }
  const auto* activation = next >= 0 ? std::get_if<model::Activation>(&node(next).op) : nullptr;
  if (activation && traits.takes_activation && takes(unit, traits, *activation) &&
      same_cut(graph, plan, unit.out, next)) {
    unit.activation = unit.out = next;
    taken[static_cast<std::size_t>(next)] = true;
  }
}

}  // namespace

std::vector<int> consumer_counts(const Graph& graph) {
  std::vector<int> counts;
  for (const auto& readers : consumers_of(graph)) counts.push_back(static_cast<int>(readers.size()));
  return counts;
}

std::vector<Unit> fuse(const Graph& graph, const plan::Plan& plan) {
  const auto consumers = consumers_of(graph);
  std::vector<bool> taken(graph.nodes.size());
  std::vector<Unit> units;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (taken[i]) continue;
    const int index = static_cast<int>(i);
    Unit unit{.main = index, .out = index, .srcs = graph.nodes[i].srcs};
    grow(unit, graph, plan, consumers, taken);
    units.push_back(std::move(unit));
  }
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.out < b.out; });
  return units;
}

model::Activation activation_of(const Graph& graph, const Unit& unit) {
  const int node = unit.activation >= 0 ? unit.activation : unit.main;
  const auto* activation = std::get_if<model::Activation>(&graph.nodes[static_cast<std::size_t>(node)].op);
  return activation ? *activation : model::Activation{};
}

}  // namespace orthant::schedule
