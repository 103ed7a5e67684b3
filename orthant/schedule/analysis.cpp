#include "orthant/schedule/analysis.hpp"

#include "orthant/model/traits.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace orthant::schedule {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Range;

std::int64_t length(const Range& range) { return std::max<std::int64_t>(range.hi - range.lo, 0); }

/// What a rank owns and wants of a tensor along one dim, in cells.
struct Overlap {
  std::int64_t owned = 0, wanted = 0, common = 0, both = 0;
  auto operator<=>(const Overlap&) const = default;
};

Overlap overlap_of(const Range& owned, const Range& wanted) {
  return {.owned = length(owned),
          .wanted = length(wanted),
          .common = length({std::max(owned.lo, wanted.lo), std::min(owned.hi, wanted.hi)}),
          .both = std::max(owned.hi, wanted.hi) - std::min(owned.lo, wanted.lo)};
}

/// The coordinates whose blocks are of all sorts that there are: samples are read as they are cut, so that the first
/// and the last part of them are enough.
std::vector<int> telling_coordinates(Dim dim, int parts) {
  if (dim == Dim::n) return parts > 1 ? std::vector<int>{0, parts - 1} : std::vector<int>{0};
  std::vector<int> all(static_cast<std::size_t>(parts));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Range around(const Range& a, const Range& b) {
  if (a.lo >= a.hi) return b;
  if (b.lo >= b.hi) return a;
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

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
  add_micro_batches();
}

Geometry::Geometry(const model::Graph& whole, const plan::Plan& plan, std::int64_t samples)
    : graph(whole), in_place(whole.nodes.size()), readers(whole.nodes.size()) {
  for (model::Node& node : graph.nodes) node.shape.n = samples;
  cuts.reserve(graph.nodes.size());
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) cuts.emplace_back(plan, graph, node);
  loss = plan::loss_distribution(plan, graph);
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

void Analysis::add_micro_batches() {
  const std::int64_t samples = graph_.nodes.front().shape.n;
  for (int i = 0; i < plan_.micro_batches; ++i) {
    const std::int64_t first = tensor::block_begin(samples, plan_.micro_batches, i);
    const std::int64_t count = tensor::block_begin(samples, plan_.micro_batches, i + 1) - first;
    auto known = std::find_if(geometries_.begin(), geometries_.end(),
                              [&](const auto& one) { return one->graph.nodes.front().shape.n == count; });
    if (known == geometries_.end()) {
      known = geometries_.insert(geometries_.end(), std::make_unique<Geometry>(graph_, plan_, count));
      find_storage(**known);
    }
    micro_batches_.push_back({.index = i, .first_sample = first, .geometry = known->get()});
  }
}

/// True if on every rank what the unit reads of a source may lie in one buffer with what the rank owns of it: both are
/// cut alike, and the box around both has little else. This holds for halos and gathered channels.
bool Analysis::fits_in_place(const Geometry& geometry, const Unit& unit, std::size_t source) const {
  const tensor::Redistribution boxes = reading(geometry, unit, source);
  const tensor::Grid& grid = boxes.held.grid;
  if (grid != boxes.wanted.grid || boxes.held.first_rank != boxes.wanted.first_rank) return false;
  std::array<std::vector<Overlap>, tensor::all_dims.size()> sorts;
  for (const Dim dim : tensor::all_dims) {
    std::vector<Overlap>& list = sorts[static_cast<std::size_t>(dim)];
    for (const int i : telling_coordinates(dim, grid[dim])) {
      const Range owned = tensor::block(boxes.held, dim, i);
      const std::vector<Range> wanted =
          dim == Dim::c ? boxes.wanted.channels(i) : std::vector<Range>{boxes.wanted.along(dim, i)};
      if (wanted.size() > 1) return false;
      if (!wanted.empty() && length(wanted.front()) > 0) list.push_back(overlap_of(owned, wanted.front()));
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  const auto& [ns, cs, ds, hs, ws] = sorts;
  for (const Overlap& n : ns) {
    for (const Overlap& c : cs) {
      for (const Overlap& d : ds) {
        for (const Overlap& h : hs) {
          for (const Overlap& w : ws) {
            const auto product = [&](auto part) { return n.*part * c.*part * d.*part * h.*part * w.*part; };
            // Of a rank that owns nothing, only what it wants is stored.
            const bool owns = product(&Overlap::owned) > 0;
            const std::int64_t apart = product(&Overlap::owned) + product(&Overlap::wanted) - product(&Overlap::common);
            if (owns && 4 * product(&Overlap::both) > 5 * apart) return false;
          }
        }
      }
    }
  }
  return true;
}

/// Finds what is read in place. What others send for it arrives once for all readers, so only those of one pipeline
/// stage may: ranks of a later stage would wait for it before the pass in which the others send it.
void Analysis::find_storage(Geometry& geometry) const {
  std::vector<int> stage_of_readers(graph_.nodes.size(), -1);
  for (const Unit& unit : units_) {
    for (std::size_t i = 0; i < at(graph_.nodes, unit.main).srcs.size(); ++i) {
      int& stage = at(stage_of_readers, unit.srcs[i]);
      const bool fits = (stage < 0 || stage == planned(unit.main).stage) && fits_in_place(geometry, unit, i);
      at(geometry.in_place, unit.main).push_back(fits);
      if (!fits) continue;
      stage = planned(unit.main).stage;
      at(geometry.readers, unit.srcs[i]).push_back({.node = unit.main, .source = i});
    }
  }
}

tensor::Redistribution Analysis::reading(const Geometry& geometry, const Unit& unit, std::size_t source) const {
  const plan::NodeCut& reader = at(geometry.cuts, unit.main);
  // The residual of a fused sum is read where the sum is.
  return {.held = at(geometry.cuts, unit.srcs[source]).dst(),
          .wanted = is_residual(unit, source) ? tensor::demand_of(reader.dst()) : reader.reading(source)};
}

namespace {

/// What readers in place want of a node along a dim other than c.
Range wanted_in_place(const Geometry& geometry, int node, Dim dim, int coordinate) {
  const std::int64_t end = at(geometry.cuts, node).dst().global[dim];
  Range all{end, end};
  for (const Geometry::Reader& reader : at(geometry.readers, node))
    all = around(all, at(geometry.cuts, reader.node).reading(reader.source).along(dim, coordinate));
  return all;
}

Range channels_in_place(const Geometry& geometry, int node, int coordinate) {
  Range all;
  for (const Geometry::Reader& reader : at(geometry.readers, node)) {
    for (const Range& range : at(geometry.cuts, reader.node).reading(reader.source).channels(coordinate))
      all = around(all, range);
  }
  return all;
}

}  // namespace

/// Readers in place are cut as the node is. Where one of them wants nothing along a dim, it counts along the others all
/// the same: that is at most a few cells too many.
tensor::Redistribution Analysis::filling(const Geometry& geometry, int node) {
  const tensor::Distribution& held = at(geometry.cuts, node).dst();
  const auto along = [&geometry, node](Dim dim, int coordinate) {
    return wanted_in_place(geometry, node, dim, coordinate);
  };
  const auto channels = [&geometry, node](int coordinate) {
    const Range all = channels_in_place(geometry, node, coordinate);
    return length(all) > 0 ? std::vector<Range>{all} : std::vector<Range>{};
  };
  return {.held = held,
          .wanted = {.grid = held.grid, .first_rank = held.first_rank, .along = along, .channels = channels}};
}

tensor::Redistribution Analysis::partial_sums(const Geometry& geometry, int node) {
  const plan::NodeCut& cut = at(geometry.cuts, node);
  return {.held = cut.dst(), .wanted = cut.computing()};
}

tensor::Redistribution Analysis::peaks(const Geometry& geometry, int node) {
  tensor::Distribution held = at(geometry.cuts, at(geometry.graph.nodes, node).srcs.front()).dst();
  for (const Dim dim : tensor::spatial_dims) {
    // A part without cells has no peak.
    const std::int64_t numbers = dim == Dim::w ? model::peak_numbers : 1;
    std::vector<std::int64_t> cuts{0};
    for (int i = 0; i < held.grid[dim]; ++i)
      cuts.push_back(cuts.back() + (length(tensor::block(held, dim, i)) > 0 ? numbers : 0));
    held.global[dim] = cuts.back();
    held.cuts[static_cast<std::size_t>(dim)] = std::move(cuts);
  }
  const tensor::Distribution& dst = at(geometry.cuts, node).dst();
  tensor::Demand wanted = tensor::demand_of(dst);
  wanted.along = [dst, all = held.global](Dim dim, int coordinate) {
    const Range own = tensor::block(dst, dim, coordinate);
    if (dim == Dim::n) return own;
    return length(own) > 0 ? Range{0, all[dim]} : Range{all[dim], all[dim]};
  };
  return {.held = std::move(held), .wanted = std::move(wanted)};
}

tensor::Redistribution Analysis::loss_reading(const Geometry& geometry) {
  return {.held = geometry.cuts.back().dst(), .wanted = tensor::demand_of(geometry.loss)};
}

Box Analysis::stored_box(const Geometry& geometry, int node, int rank) {
  const tensor::Distribution& held = at(geometry.cuts, node).dst();
  const Box owned = tensor::owned_box(held, rank);
  if (at(geometry.readers, node).empty() || !tensor::takes_part(held, rank)) return owned;
  const tensor::Grid place = tensor::coordinates(held.grid, rank - held.first_rank);
  Box wanted;
  for (const Dim dim : tensor::all_dims) {
    wanted.set(dim, dim == Dim::c ? channels_in_place(geometry, node, place.c)
                                  : wanted_in_place(geometry, node, dim, place[dim]));
  }
  return tensor::bounding(owned, wanted);
}

Kind Analysis::kind_of(const Unit& unit, std::size_t source) const {
  const plan::NodePlan& reader = planned(unit.main);
  const plan::NodePlan& held = planned(unit.srcs[source]);
  if (reader.first_rank != held.first_rank || tensor::parts(reader.grid) != tensor::parts(held.grid))
    return Kind::redistribution;
  if (model::traits_of(at(graph_.nodes, unit.main).op).contraction && reader.grid.c > 1) return Kind::gather;
  return reader.grid == held.grid ? Kind::halo : Kind::redistribution;
}

tensor::RankGroup Analysis::loss_ranks() const {
  const tensor::Distribution dst = plan::loss_distribution(plan_, graph_);
  return {dst, dst.first_rank, {}};
}

}  // namespace orthant::schedule
