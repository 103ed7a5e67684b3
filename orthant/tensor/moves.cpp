#include "orthant/tensor/moves.hpp"

#include "orthant/tensor/crossings.hpp"

#include <algorithm>
#include <array>

namespace orthant::tensor {
namespace {

bool is_empty(const Range& range) { return range.lo >= range.hi; }

Range common(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

/// Cells that a range has in common with the range of a coordinate. In c, `wanted` is the number of the receiver's box.
struct Crossing {
  int coordinate = 0;
  Range cells;
  int wanted = 0;
};
using Crossings = std::vector<Crossing>;

template <class RangeOf>
void add_crossings(Crossings& list, const Range& range, int count, int wanted, RangeOf range_of) {
  for_each_crossing(range, count, range_of, [&](int coordinate, const Range& cells) {
    list.push_back({coordinate, cells, wanted});
  });
}

using CrossingsPerDim = std::array<Crossings, all_dims.size()>;

/// Calls visit(part, wanted, box) for all combinations of crossings, in the order of parts.
template <class Visit>
void for_each_box(const Grid& grid, const CrossingsPerDim& per_dim, Visit visit) {
  const auto& [ns, cs, ds, hs, ws] = per_dim;
  Box box;
  for (const Crossing& n : ns) {
    box.lo.n = n.cells.lo, box.hi.n = n.cells.hi;
    for (std::size_t first = 0; first < cs.size();) {
      std::size_t end = first;  // the crossings of one coordinate stand together
      while (end < cs.size() && cs[end].coordinate == cs[first].coordinate) ++end;
      for (const Crossing& d : ds) {
        box.lo.d = d.cells.lo, box.hi.d = d.cells.hi;
        const int plane = ((n.coordinate * grid.c + cs[first].coordinate) * grid.d + d.coordinate) * grid.h;
        for (const Crossing& h : hs) {
          box.lo.h = h.cells.lo, box.hi.h = h.cells.hi;
          for (const Crossing& w : ws) {
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

std::size_t box_count(const CrossingsPerDim& per_dim) {
  std::size_t count = 1;
  for (const Crossings& list : per_dim) count *= list.size();
  return count;
}

/// What the holders have of what `rank` wants.
CrossingsPerDim holders_of(const Redistribution& boxes, int rank) {
  const Demand& wanted = boxes.wanted;
  const Grid at = coordinates(wanted.grid, rank - wanted.first_rank);
  CrossingsPerDim per_dim;
  for (const Dim dim : all_dims) {
    Crossings& list = per_dim[static_cast<std::size_t>(dim)];
    const auto held = [&](int i) { return block(boxes.held, dim, i); };
    if (dim != Dim::c) {
      add_crossings(list, wanted.along(dim, at[dim]), boxes.held.grid[dim], 0, held);
      continue;
    }
    const std::vector<Range> channels = wanted.channels(at.c);
    for (std::size_t i = 0; i < channels.size(); ++i)
      add_crossings(list, channels[i], boxes.held.grid.c, static_cast<int>(i), held);
    std::stable_sort(list.begin(), list.end(),
                     [](const Crossing& a, const Crossing& b) { return a.coordinate < b.coordinate; });
  }
  return per_dim;
}

/// What is wanted of what `rank` holds.
CrossingsPerDim readers_of(const Redistribution& boxes, int rank) {
  const Demand& wanted = boxes.wanted;
  const Grid at = coordinates(boxes.held.grid, rank - boxes.held.first_rank);
  CrossingsPerDim per_dim;
  for (const Dim dim : all_dims) {
    Crossings& list = per_dim[static_cast<std::size_t>(dim)];
    const Range own = block(boxes.held, dim, at[dim]);
    if (dim != Dim::c) {
      add_crossings(list, own, wanted.grid[dim], 0, [&](int i) { return wanted.along(dim, i); });
      continue;
    }
    for (int i = 0; i < wanted.grid.c; ++i) {
      const std::vector<Range> channels = wanted.channels(i);
      for (std::size_t k = 0; k < channels.size(); ++k) {
        const Range cells = common(own, channels[k]);
        if (!is_empty(cells)) list.push_back({i, cells, static_cast<int>(k)});
      }
    }
  }
  return per_dim;
}

bool is_part(const Demand& demand, int rank) {
  return rank >= demand.first_rank && rank < demand.first_rank + parts(demand.grid);
}

}  // namespace

Demand demand_of(const Distribution& distribution) {
  return {.grid = distribution.grid,
          .first_rank = distribution.first_rank,
          .along = [distribution](Dim dim, int coordinate) { return block(distribution, dim, coordinate); },
          .channels =
              [distribution](int coordinate) {
                const Range range = block(distribution, Dim::c, coordinate);
                return is_empty(range) ? std::vector<Range>{} : std::vector<Range>{range};
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
    const std::vector<Range> channels = wanted.channels(i);
    if (is_empty(own) ? !channels.empty() : channels.size() != 1 || channels.front() != own) return false;
  }
  return true;
}

Moves moves_of(const Redistribution& boxes, int rank) {
  Moves moves;
  if (takes_part(boxes.held, rank)) {
    const CrossingsPerDim readers = readers_of(boxes, rank);
    moves.sends.reserve(box_count(readers));
    for_each_box(boxes.wanted.grid, readers, [&](int part, int wanted, const Box& box) {
      const int peer = boxes.wanted.first_rank + part;
      (peer == rank ? moves.stays : moves.sends).push_back({.peer = peer, .wanted = wanted, .box = box});
    });
  }
  if (is_part(boxes.wanted, rank)) {
    const CrossingsPerDim holders = holders_of(boxes, rank);
    moves.receives.reserve(box_count(holders));
    for_each_box(boxes.held.grid, holders, [&](int part, int wanted, const Box& box) {
      const int peer = boxes.held.first_rank + part;
      if (peer != rank) moves.receives.push_back({.peer = peer, .wanted = wanted, .box = box});
    });
  }
  return moves;
}

}  // namespace orthant::tensor
