#include "orthant/schedule/classes.hpp"

#include "orthant/base/random.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/schedule/levels.hpp"
#include "orthant/schedule/loss_tree.hpp"
#include "orthant/tensor/crossings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

namespace orthant::schedule {
namespace {

using tensor::Dim;
using tensor::Grid;
using tensor::Range;
using Hash = std::uint64_t;

Hash mixed(Hash hash, std::int64_t number) { return base::keyed(hash, static_cast<std::uint64_t>(number)); }

Hash mixed(Hash hash, const Range& range, std::int64_t origin) {
  return mixed(mixed(hash, range.lo - origin), range.hi - origin);
}

/// The parts of a grid, as which ranks have them.
struct Parts {
  Grid grid;
  int first_rank = 0;
  int stage = 0;

  [[nodiscard]] auto key() const { return std::tuple(grid.n, grid.c, grid.d, grid.h, grid.w, first_rank, stage); }
  bool operator<(const Parts& other) const { return key() < other.key(); }
};

/// What is known of the coordinates of a grid, per dim and coordinate.
struct Marks {
  std::array<std::vector<Hash>, tensor::all_dims.size()> of{};

  explicit Marks(const Grid& grid) {
    for (const Dim dim : tensor::all_dims)
      of[static_cast<std::size_t>(dim)].assign(static_cast<std::size_t>(grid[dim]), Hash{1});
  }
  Hash& at(Dim dim, int coordinate) { return of[static_cast<std::size_t>(dim)][static_cast<std::size_t>(coordinate)]; }
};

std::vector<Range> wanted_along(const tensor::Demand& demand, Dim dim, int coordinate) {
  if (dim == Dim::c) return demand.channels(coordinate);
  return {demand.along(dim, coordinate)};
}

/// How what a part of one side has along a dim meets the parts of the other side. `self` is the part of the same rank
/// there, or -1 if that is not known.
template <class RangeOf>
Hash crossings(Hash hash, const Range& own, int count, int self, bool coarse, RangeOf range_of) {
  int parts = 0;
  std::int64_t others = 0;
  tensor::for_each_crossing(own, count, range_of, [&](int coordinate, const Range& cells) {
    ++parts;
    if (coordinate != self) others += cells.hi - cells.lo;
    if (coarse) return;
    hash = mixed(hash, cells, own.lo);
    hash = mixed(hash, self < 0 ? 2 : coordinate == self ? 1 : 0);
  });
  return mixed(mixed(hash, parts), others);
}

/// Finds what tells ranks apart.
class Search {
 public:
  Search(const Analysis& analysis, const LowerOptions& options, Classes::Detail detail)
      : analysis_(analysis),
        options_(options),
        coarse_(detail == Classes::Detail::coarse),
        forms_(analysis.plan().exchanges),
        hashes_(static_cast<std::size_t>(analysis.plan().ranks), Hash{1}) {}

  std::vector<Hash> run() {
    for (const MicroBatch& micro_batch : analysis_.micro_batches()) {
      const bool is_new = std::find(seen_.begin(), seen_.end(), micro_batch.geometry) == seen_.end();
      if (!is_new) continue;
      seen_.push_back(micro_batch.geometry);
      mark(*micro_batch.geometry);
    }
    for (int node = 0; node < static_cast<int>(analysis_.graph().nodes.size()); ++node) mark_groups(node);
    mark_group(plan::loss_distribution(analysis_.plan(), analysis_.graph()), {});
    mark_loss_tree();
    add_marks();
    return std::move(hashes_);
  }

 private:
  Marks& marks(const Grid& grid, int first_rank, int stage) {
    return marks_.try_emplace(Parts{grid, first_rank, stage}, grid).first->second;
  }

  void mark(const Geometry& geometry) {
    for (const Unit& unit : analysis_.units()) {
      const int stage = analysis_.planned(unit.main).stage;
      const tensor::Distribution& dst = at(geometry.cuts, unit.main).dst();
      mark_blocks(dst, stage);
      for (std::size_t i = 0; i < unit.srcs.size(); ++i) {
        const tensor::Redistribution boxes = analysis_.reading(geometry, unit, i);
        mark(boxes, analysis_.planned(unit.srcs[i]).stage, stage);
        if (i == 0) mark_windows(unit, boxes, dst, stage);
        if (i == 0) mark_axes(geometry, unit, boxes, stage);
        if (i == 0) mark_shuffles(unit, dst, stage);
      }
      mark(Analysis::filling(geometry, unit.out), stage, stage);
      const bool sums_space =
          std::holds_alternative<model::WholeSpace>(model::traits_of(at(analysis_.graph().nodes, unit.main).op).reads);
      if (sums_space && analysis_.planned(unit.srcs[0]).stage == stage)
        mark(Analysis::peaks(geometry, unit.main), stage, stage);
      if (sums_space || analysis_.planned(unit.main).channel_parts > 1)
        mark(Analysis::partial_sums(geometry, unit.main), stage, stage);
    }
    const int last = analysis_.planned(static_cast<int>(analysis_.graph().nodes.size()) - 1).stage;
    mark_blocks(geometry.loss, last);
    mark(Analysis::loss_reading(geometry), last, last);
  }

  void mark_blocks(const tensor::Distribution& dst, int stage) {
    Marks& own = marks(dst.grid, dst.first_rank, stage);
    for (const Dim dim : tensor::all_dims) {
      for (int i = 0; i < dst.grid[dim]; ++i) {
        Hash& mark = own.at(dim, i);
        const Range block = tensor::block(dst, dim, i);
        mark = mixed(mark, block.hi - block.lo);
      }
    }
  }

  /// Padding is where a window begins before its source and ends after it.
  void mark_windows(const Unit& unit, const tensor::Redistribution& boxes, const tensor::Distribution& dst, int stage) {
    const model::OpTraits traits = model::traits_of(at(analysis_.graph().nodes, unit.main).op);
    const tensor::Window* window = model::window_of(traits.reads);
    if (!window) return;
    const bool transposed = model::is_transposed(traits.reads);
    Marks& own = marks(dst.grid, dst.first_rank, stage);
    for (const Dim dim : tensor::spatial_dims) {
      const std::int64_t stride = window->stride[dim];
      for (int i = 0; i < dst.grid[dim]; ++i) {
        const Range to = tensor::block(dst, dim, i);
        const Range from = boxes.wanted.along(dim, i);
        const auto offset = [&](std::int64_t src, std::int64_t dst_cell) {
          return transposed ? dst_cell - src * stride : src - dst_cell * stride;
        };
        Hash& mark = own.at(dim, i);
        mark = mixed(mixed(mark, offset(from.lo, to.lo)), offset(from.hi, to.hi));
      }
    }
  }

  /// Which cells those of a block are made of, and with which weights.
  void mark_axes(const Geometry& geometry, const Unit& unit, const tensor::Redistribution& boxes, int stage) {
    const model::OpTraits traits = model::traits_of(at(analysis_.graph().nodes, unit.main).op);
    const auto* map = std::get_if<model::AlongAxes>(&traits.reads);
    if (!map) return;
    const tensor::Distribution& dst = at(geometry.cuts, unit.main).dst();
    Marks& own = marks(dst.grid, dst.first_rank, stage);
    for (const Dim dim : tensor::spatial_dims) {
      for (int i = 0; i < dst.grid[dim]; ++i) {
        const model::RemapTask::Axis axis =
            model::axis_of(model::rule_of(*map, dim), tensor::block(dst, dim, i), boxes.wanted.along(dim, i),
                           boxes.held.global[dim], dst.global[dim]);
        Hash& mark = own.at(dim, i);
        for (std::size_t k = 0; k < axis.cell.size(); ++k)
          mark = mixed(mixed(mark, axis.cell[k]), std::bit_cast<std::int32_t>(axis.weight[k]));
        for (const std::int32_t begin : axis.begin) mark = mixed(mark, begin);
      }
    }
  }

  /// Where blocks and groups begin.
  void mark_shuffles(const Unit& unit, const tensor::Distribution& dst, int stage) {
    const model::OpTraits traits = model::traits_of(at(analysis_.graph().nodes, unit.main).op);
    const auto* blocks = std::get_if<model::CellBlocks>(&traits.reads);
    const auto* groups = std::get_if<model::ShuffledChannels>(&traits.reads);
    if (!blocks && !groups) return;
    Marks& own = marks(dst.grid, dst.first_rank, stage);
    const auto phase = [&](Dim dim, int i, std::int64_t period) {
      Hash& mark = own.at(dim, i);
      mark = mixed(mark, tensor::block(dst, dim, i).lo % period);
    };
    for (int i = 0; i < dst.grid.c; ++i) phase(Dim::c, i, groups ? groups->groups : model::count(*blocks));
    for (const Dim dim : tensor::spatial_dims) {
      for (int i = 0; blocks && i < dst.grid[dim]; ++i) phase(dim, i, blocks->factor[dim]);
    }
  }

  void mark(const tensor::Redistribution& boxes, int holder_stage, int reader_stage) {
    const tensor::Demand& wanted = boxes.wanted;
    const bool alike = boxes.held.grid == wanted.grid && boxes.held.first_rank == wanted.first_rank;
    Marks& holders = marks(boxes.held.grid, boxes.held.first_rank, holder_stage);
    Marks& readers = marks(wanted.grid, wanted.first_rank, reader_stage);
    for (const Dim dim : tensor::all_dims) {
      // Samples are read as they are cut: where both are cut alike, nothing of others is wanted.
      if (alike && dim == Dim::n) continue;
      for (int i = 0; i < wanted.grid[dim]; ++i) {
        for (const Range& range : wanted_along(wanted, dim, i)) {
          Hash& mark = readers.at(dim, i);
          mark = mixed(mark, range.hi - range.lo);
          mark = crossings(mark, range, boxes.held.grid[dim], alike ? i : -1, coarse_,
                           [&](int k) { return tensor::block(boxes.held, dim, k); });
        }
      }
      if (dim == Dim::c) {
        mark_channels(boxes, alike, holders);
        continue;
      }
      for (int i = 0; i < boxes.held.grid[dim]; ++i) {
        const Range own = tensor::block(boxes.held, dim, i);
        Hash& mark = holders.at(dim, i);
        mark = crossings(mark, own, wanted.grid[dim], alike ? i : -1, coarse_,
                         [&](int k) { return wanted.along(dim, k); });
      }
    }
    if (!alike) mark_own_parts(boxes);
  }

  /// Which channels others want of each holder.
  void mark_channels(const tensor::Redistribution& boxes, bool alike, Marks& holders) const {
    std::vector<std::pair<int, Range>> all;
    for (int k = 0; k < boxes.wanted.grid.c; ++k)
      for (const Range& range : boxes.wanted.channels(k)) all.emplace_back(k, range);
    for (int i = 0; i < boxes.held.grid.c; ++i) {
      const Range own = tensor::block(boxes.held, Dim::c, i);
      Hash& mark = holders.at(Dim::c, i);
      std::int64_t cells = 0;
      for (const auto& [k, range] : all) {
        const Range common{std::max(own.lo, range.lo), std::min(own.hi, range.hi)};
        if (common.lo >= common.hi) continue;
        cells += common.hi - common.lo;
        if (!coarse_) mark = mixed(mixed(mark, common, own.lo), alike && i == k ? 1 : 0);
      }
      mark = mixed(mark, cells);
    }
  }

  /// Where holders and readers are cut differently, what stays on a rank depends on both its coordinates.
  void mark_own_parts(const tensor::Redistribution& boxes) {
    for (int rank = 0; rank < analysis_.plan().ranks; ++rank) {
      const tensor::Box held = tensor::owned_box(boxes.held, rank);
      if (tensor::is_empty(held)) continue;
      Hash& hash = at(hashes_, rank);
      for (const tensor::Box& wanted : tensor::wanted_boxes(boxes.wanted, rank)) {
        const tensor::Box both = tensor::intersection(held, wanted);
        if (coarse_) {
          hash = mixed(hash, std::bit_width(static_cast<std::uint64_t>(tensor::volume(both))));
          continue;
        }
        for (const Dim dim : tensor::all_dims) {
          hash = mixed(hash, both[dim], held[dim].lo);
          hash = mixed(hash, both[dim], wanted[dim].lo);
        }
        hash = mixed(hash, tensor::is_empty(both) ? 0 : 1);
      }
    }
  }

  void mark_groups(int node) {
    const tensor::Distribution dst = plan::distribution(analysis_.plan(), analysis_.graph(), node);
    mark_group(dst, {Dim::c});
    const model::OpTraits traits = model::traits_of(at(analysis_.graph().nodes, node).op);
    if (traits.whole_parameters) mark_group(dst, {});
    if (traits.sample_groups) {
      mark_group(dst, {Dim::n});
      mark_group(dst, {Dim::n, Dim::c});
    }
    if (traits.batch_statistics && analysis_.planned(node).statistics == plan::Statistics::spatial)
      mark_group(dst, {Dim::n, Dim::c});
  }

  /// What a rank does in the exchanges of its group depends on its place there.
  void mark_group(const tensor::Distribution& dst, const std::vector<Dim>& fixed) {
    const auto key = std::pair(Parts{dst.grid, dst.first_rank, 0}.key(), fixed);
    if (std::find(marked_groups_.begin(), marked_groups_.end(), key) != marked_groups_.end()) return;
    marked_groups_.push_back(key);
    std::map<tensor::RankGroup, Hash> known;
    for (int rank = dst.first_rank; rank < dst.first_rank + tensor::parts(dst.grid); ++rank) {
      const tensor::RankGroup group(dst, rank, fixed);
      if (known.try_emplace(group, 0).second) mark_members(group);
    }
  }

  void mark_members(const tensor::RankGroup& group) {
    const std::vector<int> members = group.to_list();
    const std::vector<int> counts = members_per_machine(members, options_.machines, forms_.two_levels);
    const int active = *std::min_element(counts.begin(), counts.end());
    const int machines = static_cast<int>(counts.size());
    const int sum_parts = adding_part(active, forms_.sums);
    std::size_t member = 0;
    for (int machine = 0; machine < machines; ++machine) {
      const int count = at(counts, machine);
      for (int place = 0; place < count; ++place, ++member) {
        Hash& hash = at(hashes_, members[member]);
        const int leaning = place < sum_parts ? (count - 1 - place) / sum_parts : -1;
        for (const int number : {group.size(), machines, count, active, place < active ? 1 : 0, leaning})
          hash = mixed(hash, number);
        for (const plan::GroupForm& form : {forms_.sums, forms_.buckets}) {
          if (form.of(machines) != plan::Form::recursive && form.of(machines) != plan::Form::tree) continue;
          const int adding = adding_part(machines, form);
          hash = mixed(hash, machine >= adding ? -1 : (machines - 1 - machine) / adding);
        }
      }
    }
  }

  /// Those who do not know the losses hear of them in a tree: see ops::spread_losses.
  void mark_loss_tree() {
    const tensor::RankGroup knowing = analysis_.loss_ranks();
    const int others = analysis_.plan().ranks - knowing.size();
    if (others == 0) return;
    int member = 0;
    for (int rank = 0; rank < analysis_.plan().ranks; ++rank) {
      const bool is_first = rank == knowing.front();
      if (knowing.contains(rank) && !is_first) continue;
      const int own = is_first ? 0 : ++member;
      const tensor::Range children = LossTree::children(own, others);
      at(hashes_, rank) = mixed(mixed(at(hashes_, rank), is_first ? 1 : 2), children.hi - children.lo);
    }
  }

  void add_marks() {
    for (auto& [parts, own] : marks_) {
      for (int rank = 0; rank < analysis_.plan().ranks; ++rank) {
        Hash& hash = at(hashes_, rank);
        const int part = rank - parts.first_rank;
        const bool takes_part = part >= 0 && part < tensor::parts(parts.grid);
        hash = mixed(hash, takes_part ? 1 : 0);
        if (!takes_part) continue;
        const Grid coordinates = tensor::coordinates(parts.grid, part);
        for (const Dim dim : tensor::all_dims) hash = base::keyed(hash, own.at(dim, coordinates[dim]));
      }
    }
  }

  const Analysis& analysis_;
  const LowerOptions& options_;
  bool coarse_;
  const plan::ExchangeForms& forms_;
  std::vector<Hash> hashes_;  ///< per rank
  std::vector<const Geometry*> seen_;
  std::map<Parts, Marks> marks_;
  std::vector<std::pair<std::tuple<int, int, int, int, int, int, int>, std::vector<Dim>>> marked_groups_;
};

}  // namespace

Classes::Classes(const Analysis& analysis, const LowerOptions& options, Detail detail) {
  std::map<Hash, int> known;
  int rank = 0;
  for (const Hash hash : Search(analysis, options, detail).run()) {
    const auto [entry, is_new] = known.try_emplace(hash, static_cast<int>(classes_.size()));
    if (is_new) classes_.push_back({.representative = rank});
    ++at(classes_, entry->second).members;
    class_of_.push_back(entry->second);
    ++rank;
  }
}

}  // namespace orthant::schedule
