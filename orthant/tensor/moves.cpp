#include "orthant/tensor/moves.hpp"

#include "orthant/tensor/crossings.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace orthant::tensor {
namespace {

bool is_empty(const Range& range) { return range.lo >= range.hi; }

Range common(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

/// Cells that a range has in common with the range of a coordinate. In c, `wanted` is the number of the receiver's box.
struct Crossing {
  int coordinate = 0;
  int wanted = 0;
  Range cells;
};

/// The crossings of all dims, dim by dim in one list.
class Crossings {
 public:
  Crossings() { all_.reserve(16); }

  /// Those that are added next are of `dim`; dims come in order.
  void begin(Dim dim) { begins_[static_cast<std::size_t>(dim)] = all_.size(); }
  void end() { begins_.back() = all_.size(); }
  void add(const Crossing& crossing) { all_.push_back(crossing); }
  template <class RangeOf>
  void add(const Range& range, int count, int wanted, int guess, RangeOf range_of) {
    const auto add_one = [&](int coordinate, const Range& cells) {
      all_.push_back({.coordinate = coordinate, .wanted = wanted, .cells = cells});
    };
    for_each_crossing(range, count, range_of, add_one, guess);
  }
  /// Brings those of one dim into the order of coordinates, with its boxes in theirs.
  void sort(Dim dim) {
    std::stable_sort(all_.begin() + static_cast<std::ptrdiff_t>(begins_[static_cast<std::size_t>(dim)]), all_.end(),
                     [](const Crossing& a, const Crossing& b) { return a.coordinate < b.coordinate; });
  }

  [[nodiscard]] std::span<const Crossing> of(Dim dim) const {
    const std::size_t first = begins_[static_cast<std::size_t>(dim)];
    return {all_.data() + first, begins_[static_cast<std::size_t>(dim) + 1] - first};
  }
  [[nodiscard]] std::size_t combinations() const {
    std::size_t count = 1;
    for (const Dim dim : all_dims) count *= of(dim).size();
    return count;
  }

 private:
  std::vector<Crossing> all_;
  std::array<std::size_t, all_dims.size() + 1> begins_{};
};

/// Calls visit(part, wanted, box) for all combinations of crossings, in the order of parts.
template <class Visit>
void for_each_box(const Grid& grid, const Crossings& crossings, Visit visit) {
  const std::span<const Crossing> cs = crossings.of(Dim::c);
  Box box;
  for (const Crossing& n : crossings.of(Dim::n)) {
    box.lo.n = n.cells.lo, box.hi.n = n.cells.hi;
    for (std::size_t first = 0; first < cs.size();) {
      std::size_t end = first;  // the crossings of one coordinate stand together
      while (end < cs.size() && cs[end].coordinate == cs[first].coordinate) ++end;
      for (const Crossing& d : crossings.of(Dim::d)) {
        box.lo.d = d.cells.lo, box.hi.d = d.cells.hi;
        const int plane = ((n.coordinate * grid.c + cs[first].coordinate) * grid.d + d.coordinate) * grid.h;
        for (const Crossing& h : crossings.of(Dim::h)) {
          box.lo.h = h.cells.lo, box.hi.h = h.cells.hi;
          for (const Crossing& w : crossings.of(Dim::w)) {
            box.lo.w = w.cells.lo, box.hi.w = w.cells.hi;
            const int part = (plane + h.coordinate) * grid.w + w.coordinate;
            for (std::size_t c = first; c < end; ++c) {
              box.lo.c = cs[c].cells.lo, box.hi.c = cs[c].cells.hi;
              visit(part, cs[c].wanted, box);
            }
          }
        }
      }
      first = end;
    }
  }
}

/// What the holders have of what `rank` wants.
Crossings holders_of(const Redistribution& boxes, int rank) {
  const Demand& wanted = boxes.wanted;
  const Grid at = coordinates(wanted.grid, rank - wanted.first_rank);
  Crossings crossings;
  for (const Dim dim : all_dims) {
    crossings.begin(dim);
    const auto held = [&](int i) { return block(boxes.held, dim, i); };
    if (dim != Dim::c) {
      crossings.add(wanted.along(dim, at[dim]), boxes.held.grid[dim], 0, at[dim], held);
      continue;
    }
    const RangeList channels = wanted.channels(at.c);
    for (std::size_t i = 0; i < channels.size(); ++i)
      crossings.add(channels[i], boxes.held.grid.c, static_cast<int>(i), -1, held);
    if (channels.size() > 1) crossings.sort(dim);
  }
  crossings.end();
  return crossings;
}

/// What is wanted of what `rank` holds.
Crossings readers_of(const Redistribution& boxes, int rank) {
  const Demand& wanted = boxes.wanted;
  const Grid at = coordinates(boxes.held.grid, rank - boxes.held.first_rank);
  Crossings crossings;
  for (const Dim dim : all_dims) {
    crossings.begin(dim);
    const Range own = block(boxes.held, dim, at[dim]);
    if (dim != Dim::c) {
      crossings.add(own, wanted.grid[dim], 0, at[dim], [&](int i) { return wanted.along(dim, i); });
      continue;
    }
    for (int i = 0; i < wanted.grid.c; ++i) {
      const RangeList channels = wanted.channels(i);
      for (std::size_t k = 0; k < channels.size(); ++k) {
        const Range cells = common(own, channels[k]);
        if (!is_empty(cells)) crossings.add({.coordinate = i, .wanted = static_cast<int>(k), .cells = cells});
      }
    }
  }
  crossings.end();
  return crossings;
}

bool is_part(const Demand& demand, int rank) {
  return rank >= demand.first_rank && rank < demand.first_rank + parts(demand.grid);
}

}  // namespace

DemandTable::DemandTable(Demand demand) : asked_(std::move(demand)) {
  for (const Dim dim : spatial_dims) {
    std::vector<Range>& list = along_[static_cast<std::size_t>(dim)];
    list.reserve(static_cast<std::size_t>(asked_.grid[dim]));
    for (int i = 0; i < asked_.grid[dim]; ++i) list.push_back(asked_.along(dim, i));
  }
  channels_.reserve(static_cast<std::size_t>(asked_.grid.c));
  for (int i = 0; i < asked_.grid.c; ++i) channels_.push_back(asked_.channels(i));
}

Range DemandTable::along(Dim dim, int coordinate) const {
  if (dim == Dim::n) return asked_.along(dim, coordinate);
  if (dim != Dim::c) return along_[static_cast<std::size_t>(dim)][static_cast<std::size_t>(coordinate)];
  const RangeList& channels = channels_[static_cast<std::size_t>(coordinate)];
  if (channels.empty()) return {};
  Range all = channels.front();
  for (const Range& range : channels) all = {std::min(all.lo, range.lo), std::max(all.hi, range.hi)};
  return all;
}

Demand DemandTable::demand() const {
  return {.grid = asked_.grid,
          .first_rank = asked_.first_rank,
          .along = [this](Dim dim, int coordinate) { return along(dim, coordinate); },
          .channels = [this](int coordinate) { return channels_[static_cast<std::size_t>(coordinate)]; }};
}

Demand demand_of(const Distribution& distribution) {
  return {.grid = distribution.grid,
          .first_rank = distribution.first_rank,
          .along = [distribution](Dim dim, int coordinate) { return block(distribution, dim, coordinate); },
          .channels =
              [distribution](int coordinate) {
                const Range range = block(distribution, Dim::c, coordinate);
                return is_empty(range) ? RangeList() : RangeList(range);
              }};
}

std::vector<Box> wanted_boxes(const Demand& demand, int rank) {
  std::vector<Box> boxes;
  if (!is_part(demand, rank)) return boxes;
  const Grid at = coordinates(demand.grid, rank - demand.first_rank);
  Box box;
  for (const Dim dim : all_dims) {
    if (dim == Dim::c) continue;
    const Range range = demand.along(dim, at[dim]);
    if (is_empty(range)) return boxes;
    box.set(dim, range);
  }
  for (const Range& channels : demand.channels(at.c)) {
    box.set(Dim::c, channels);
    boxes.push_back(box);
  }
  return boxes;
}

bool is_local(const Redistribution& boxes) {
  const Demand& wanted = boxes.wanted;
  if (boxes.held.grid != wanted.grid || boxes.held.first_rank != wanted.first_rank) return false;
  for (const Dim dim : spatial_dims) {
    for (int i = 0; i < wanted.grid[dim]; ++i)
      if (wanted.along(dim, i) != block(boxes.held, dim, i)) return false;
  }
  for (int i = 0; i < wanted.grid.c; ++i) {
    const Range own = block(boxes.held, Dim::c, i);
    const RangeList channels = wanted.channels(i);
    if (is_empty(own) ? !channels.empty() : channels.size() != 1 || channels.front() != own) return false;
  }
  return true;
}

Moves moves_of(const Redistribution& boxes, int rank) {
  Moves moves;
  if (takes_part(boxes.held, rank)) {
    const Crossings readers = readers_of(boxes, rank);
    moves.sends.reserve(readers.combinations());
    for_each_box(boxes.wanted.grid, readers, [&](int part, int wanted, const Box& box) {
      const int peer = boxes.wanted.first_rank + part;
      (peer == rank ? moves.stays : moves.sends).push_back({.peer = peer, .wanted = wanted, .box = box});
    });
  }
  if (is_part(boxes.wanted, rank)) {
    const Crossings holders = holders_of(boxes, rank);
    moves.receives.reserve(holders.combinations());
    for_each_box(boxes.held.grid, holders, [&](int part, int wanted, const Box& box) {
      const int peer = boxes.held.first_rank + part;
      if (peer != rank) moves.receives.push_back({.peer = peer, .wanted = wanted, .box = box});
    });
  }
  return moves;
}

}  // namespace orthant::tensor
