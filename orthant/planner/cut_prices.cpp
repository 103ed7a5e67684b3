#include "orthant/planner/cut_prices.hpp"

#include "orthant/base/random.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/schedule/fusion.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::planner {
namespace {

using tensor::Grid;

constexpr double float_bytes = sizeof(float);

double volume(const std::vector<tensor::Box>& boxes) {
  double sum = 0;
  for (const tensor::Box& box : boxes) sum += static_cast<double>(tensor::volume(box));
  return sum;
}

}  // namespace

Priced operator+(const Priced& a, const Priced& b) {
  return {.seconds = a.seconds + b.seconds,
          .reduction_seconds = a.reduction_seconds + b.reduction_seconds,
          .bytes = a.bytes + b.bytes,
          .channel_parts = std::max(a.channel_parts, b.channel_parts)};
}

std::size_t CutPrices::Hash::operator()(const Key& key) const {
  std::uint64_t mark = base::keyed(static_cast<std::uint64_t>(key.node), static_cast<std::uint64_t>(key.source + 1));
  for (const Grid* grid : {&key.from, &key.grid}) {
    for (const tensor::Dim dim : tensor::all_dims) mark = base::keyed(mark, static_cast<std::uint64_t>((*grid)[dim]));
  }
  return mark;
}

CutPrices::CutPrices(const model::Graph& graph, const oracle::Prices& prices, Network network,
                     const model::Optimizer& optimizer)
    : graph_(graph),
      prices_(prices),
      network_(std::move(network)),
      optimizer_(optimizer),
      scratch_(plan::serial_plan(graph)),
      fused_(graph.nodes.size(), true),
      is_kept_(graph.nodes.size(), false),
      needs_gradient_(graph.nodes.size(), false) {
  for (const schedule::Unit& unit : schedule::fuse(graph, scratch_)) {
    fused_[static_cast<std::size_t>(unit.main)] = false;
    is_kept_[static_cast<std::size_t>(unit.out)] = true;
  }
  for (const model::Parameter& parameter : model::parameters(graph))
    if (parameter.trainable) needs_gradient_[static_cast<std::size_t>(parameter.node)] = true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& srcs = graph.nodes[i].srcs;
    if (std::any_of(srcs.begin(), srcs.end(), [&](int src) { return needs_gradient_[static_cast<std::size_t>(src)]; }))
      needs_gradient_[i] = true;
  }
  find_alike();
}

bool CutPrices::alike(int a, int b) const {
  const auto same = [&](const std::vector<bool>& flags, int x, int y) {
    return flags[static_cast<std::size_t>(x)] == flags[static_cast<std::size_t>(y)];
  };
  if (at(a).op != at(b).op || at(a).shape != at(b).shape || at(a).srcs.size() != at(b).srcs.size()) return false;
  if (!same(fused_, a, b) || !same(is_kept_, a, b)) return false;
  for (std::size_t i = 0; i < at(a).srcs.size(); ++i) {
    const int x = at(a).srcs[i];
    const int y = at(b).srcs[i];
    if (at(x).shape != at(y).shape || !same(needs_gradient_, x, y) || at(x).srcs.empty() != at(y).srcs.empty())
      return false;
    // What a source's channels may be cut into depends on its op.
    if (at(x).op.index() != at(y).op.index() || plan::groups_of(at(x).op) != plan::groups_of(at(y).op)) return false;
  }
  return true;
}

void CutPrices::find_alike() {
  for (int node = 0; node < static_cast<int>(graph_.nodes.size()); ++node) {
    int first = 0;
    while (first < node && (first_alike_[static_cast<std::size_t>(first)] != first || !alike(first, node))) ++first;
    first_alike_.push_back(first);
  }
}

plan::NodeCut CutPrices::cut(int node, const Grid& grid, int channel_parts) {
  plan::NodePlan& entry = scratch_.nodes[static_cast<std::size_t>(node)];
  entry.grid = grid;
  entry.channel_parts = channel_parts;
  return {scratch_, graph_, node};
}

Priced CutPrices::own(int node, const Grid& grid) {
  const int first = first_alike_[static_cast<std::size_t>(node)];
  const auto [found, is_new] = known_.try_emplace(Key{.node = first, .source = -1, .grid = grid});
  if (is_new) found->second.push_back(price_own(first, grid));
  return found->second.front();
}

const std::vector<Priced>& CutPrices::reading(int node, std::size_t source, const std::optional<Grid>& from,
                                              const Grid& grid) {
  const int first = first_alike_[static_cast<std::size_t>(node)];
  const auto [found, is_new] = known_.try_emplace(
      Key{.node = first, .source = static_cast<int>(source), .from = from.value_or(Grid{.n = 0}), .grid = grid});
  if (!is_new) return found->second;
  std::vector<Priced>& ways = found->second;
  if (plan::computes(at(first).op)) {
    for (const int parts : ways_to_sum(first, grid)) ways.push_back(price_layer(first, from, grid, parts));
    return ways;
  }
  Priced moved;
  if (from) {
    const plan::NodeCut held = cut(at(first).srcs[source], *from, 1);
    const plan::NodeCut here = cut(first, grid, 1);
    const bool sums_space = std::holds_alternative<model::WholeSpace>(model::traits_of(at(first).op).reads);
    const bool returns = needs_gradient_[static_cast<std::size_t>(at(first).srcs[source])];
    moved.seconds = (returns ? 2 : 1) * moving_seconds({held.dst(), here.reading(source)});
    if (sums_space) moved.seconds += (returns ? 2 : 1) * moving_seconds({here.dst(), here.computing()});
  }
  ways.push_back(moved);
  return ways;
}

Priced CutPrices::price_own(int node, const Grid& grid) {
  // A sum over space is made where the source lies, which is priced with what is read.
  for (const int src : at(node).srcs) scratch_.nodes[static_cast<std::size_t>(src)].grid = grid;
  const plan::NodeCut here = cut(node, grid, 1);
  const plan::Share share = here.share(0);
  Priced priced;
  if (is_kept_[static_cast<std::size_t>(node)]) priced.bytes += float_bytes * volume({share.owned});
  if (plan::computes(at(node).op)) return priced;
  const bool back = !at(node).srcs.empty() && needs_gradient_[static_cast<std::size_t>(at(node).srcs.front())];
  const LocalWork work = local_work({.graph = graph_,
                                     .node = node,
                                     .share = share,
                                     .fused = fused_[static_cast<std::size_t>(node)],
                                     .passes_back = back},
                                    prices_);
  priced.seconds = work.forward + work.backward_data;
  if (model::has_statistics(model::traits_of(at(node).op)))
    priced.seconds += 2 * sum_seconds(members_of(grid, network_), network_);
  return model::node_parameters(graph_, node).empty() ? priced : priced + parameters(node, grid);
}

/// Values, gradients and the optimizer's state of what this rank has of a node's parameters, their sums over ranks and
/// their update.
Priced CutPrices::parameters(int node, const Grid& grid) const {
  double items = 0;
  for (const model::Parameter& parameter : model::node_parameters(graph_, node)) {
    if (parameter.trainable)
      items += static_cast<double>(plan::count(parameter, plan::shard_of(scratch_, graph_, parameter, 0)));
  }
  const Members holders = members_of(grid, network_);
  const double mine = std::ceil(items / holders.ranks);
  Priced priced;
  priced.bytes = float_bytes * (2 * items + model::state_count(optimizer_) * mine);
  priced.reduction_seconds = reduction_seconds(float_bytes * items, holders, network_);
  const model::UpdateTask update{.optimizer = optimizer_, .count = static_cast<std::int64_t>(mine)};
  priced.seconds = prices_.of(update).seconds - prices_.setting().step_seconds;  // buckets are updated as one
  return priced;
}

/// Packing and unpacking are copies.
double CutPrices::moving_seconds(const tensor::Redistribution& boxes) const {
  const Traffic traffic = traffic_of(boxes, network_);
  const double bytes = traffic.inside_bytes + traffic.between_bytes;
  return seconds_of(traffic, network_) + 4 * bytes / prices_.setting().memory_bytes_per_second;
}

/// Every rank makes its filters, every rank sums its channels, or something in between with little to move.
std::vector<int> CutPrices::ways_to_sum(int node, const Grid& grid) const {
  const tensor::Shape& src = at(at(node).srcs.front()).shape;
  if (grid.c == 1 || !plan::sums_channels(at(node).op) || src.c < grid.c) return {1};
  std::vector<int> ways{1, grid.c};
  const double ratio = static_cast<double>(tensor::volume(src)) / static_cast<double>(tensor::volume(at(node).shape));
  const double wanted = std::sqrt(grid.c * ratio);
  int best = 1;
  for (int parts = 2; parts < grid.c; ++parts) {
    const bool nearer = std::abs(std::log(parts / wanted)) < std::abs(std::log(best / wanted));
    if (grid.c % parts == 0 && (best == 1 || nearer)) best = parts;
  }
  if (best > 1) ways.push_back(best);
  return ways;
}

Priced CutPrices::price_layer(int node, const std::optional<Grid>& from, const Grid& grid, int channel_parts) {
  const int src = at(node).srcs.front();
  const bool back = needs_gradient_[static_cast<std::size_t>(src)];
  const plan::NodeCut here = cut(node, grid, channel_parts);
  const plan::Share share = here.share(0);
  const LocalWork work = local_work({.graph = graph_, .node = node, .share = share, .passes_back = back}, prices_);
  Priced priced = parameters(node, grid);
  priced.channel_parts = channel_parts;
  priced.seconds += work.forward + work.backward_data + work.backward_weights;
  if (channel_parts > 1) priced.seconds += 2 * moving_seconds({here.dst(), here.computing()});
  if (!from) return priced;
  const plan::NodeCut held = cut(src, *from, 1);
  const double read = volume(share.sources.front());
  const bool as_it_is = *from == grid;
  // What is cut alike is read in the memory of the source, with room for what others have of it.
  priced.bytes += float_bytes * (as_it_is ? std::max(0.0, read - volume({tensor::owned_box(held.dst(), 0)})) : read);
  // Samples come with all that the first layer reads of them.
  if (as_it_is && at(src).srcs.empty()) return priced;
  const double moving = moving_seconds({held.dst(), here.reading(0)});
  priced.seconds += moving;
  if (back) priced.seconds += std::max(0.0, moving - work.backward_weights);
  return priced;
}

}  // namespace orthant::planner
