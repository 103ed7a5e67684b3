#include "orthant/data/generate/deposit.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/data/io/threads.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::data::generate {
namespace {

/// A fraction of a whole number of units, rounded. The caller gives the rest to the other side, so that nothing is
/// lost.
std::uint32_t fraction_of(std::uint32_t units, float fraction) {
  const auto halves = static_cast<std::uint32_t>(static_cast<float>(2 * units) * fraction);
  return (halves + 1) / 2;
}

/// Particles move by few boxes, so that loops are faster than a division.
std::int64_t modulo(std::int64_t i, std::int64_t size) {
  while (i < 0) i += size;
  while (i >= size) i -= size;
  return i;
}

/// A displacement as a number of whole cells and the fraction of the particle that belongs to the next cell.
struct Shift {
  std::int64_t cells;
  float fraction;
};

Shift shift_of(const Displacements& displacements, const Growth& growth, std::size_t dim, std::size_t particle) {
  const float distance = static_cast<float>(growth.first) * displacements.first[dim][particle] -
                         static_cast<float>(growth.second) * displacements.second[dim][particle];
  // std::floor would be a function call, because this is compiled for old processors, too.
  auto whole = static_cast<std::int32_t>(distance);
  if (static_cast<float>(whole) > distance) --whole;
  return {whole, distance - static_cast<float>(whole)};
}

/// The cell in which a particle started, and the plane that it is moved to.
struct Origin {
  std::uint32_t* plane;
  std::int64_t size, h, w;
};

/// Distributes units among the four cells of a plane around the new position.
void place_in_plane(const Origin& origin, const Shift& by_h, const Shift& by_w, std::uint32_t units) {
  const std::int64_t size = origin.size;
  const std::int64_t w0 = modulo(origin.w + by_w.cells, size), w1 = w0 + 1 == size ? 0 : w0 + 1;
  const std::int64_t h0 = modulo(origin.h + by_h.cells, size), h1 = h0 + 1 == size ? 0 : h0 + 1;
  const std::uint32_t there = fraction_of(units, by_h.fraction), here = units - there;
  const std::uint32_t here_next = fraction_of(here, by_w.fraction), there_next = fraction_of(there, by_w.fraction);
  origin.plane[h0 * size + w0] += here - here_next;
  origin.plane[h0 * size + w1] += here_next;
  origin.plane[h1 * size + w0] += there - there_next;
  origin.plane[h1 * size + w1] += there_next;
}

}  // namespace

Deposit::Deposit(comm::Comm& comm, const Slabs& slabs, int threads) : comm_(comm), slabs_(slabs), threads_(threads) {}

std::int64_t Deposit::bytes(const Slabs& slabs, int rank, std::int64_t reach) {
  const std::int64_t own = slabs.planes(rank).hi - slabs.planes(rank).lo;
  const std::int64_t received = slabs.ranks > 1 ? own : 0;
  return (std::min(slabs.size, own + 2 * reach + 1) + received) * slabs.size * slabs.size *
         static_cast<std::int64_t>(sizeof(std::uint32_t));
}

Deposit::Reach Deposit::reach_of(int rank) const {
  const tensor::Range own = slabs_.planes(rank);
  // One more plane after the last, because a particle also contributes to the next plane.
  return {.first = own.lo - farthest_, .planes = std::min(slabs_.size, own.hi - own.lo + 2 * farthest_ + 1)};
}

std::int64_t Deposit::slot_of(const Reach& reach, std::int64_t d) const { return modulo(d - reach.first, slabs_.size); }

std::span<std::uint32_t> Deposit::slot(std::int64_t index) {
  const std::int64_t area = slabs_.size * slabs_.size;
  return std::span(cells_).subspan(static_cast<std::size_t>(index * area), static_cast<std::size_t>(area));
}

std::span<const std::uint32_t> Deposit::plane(std::int64_t d) const {
  const std::int64_t area = slabs_.size * slabs_.size;
  const std::int64_t index = slot_of(reach_of(comm_.rank()), d);
  return std::span(cells_).subspan(static_cast<std::size_t>(index * area), static_cast<std::size_t>(area));
}

void Deposit::place(const Displacements& displacements, const Growth& growth) {
  float farthest = 0;
  const std::size_t particles = displacements.first[0].size();
  for (std::size_t particle = 0; particle < particles; ++particle) {
    const float distance = static_cast<float>(growth.first) * displacements.first[0][particle] -
                           static_cast<float>(growth.second) * displacements.second[0][particle];
    farthest = std::max(farthest, std::abs(distance));
  }
  farthest_ = static_cast<std::int64_t>(std::ceil(comm::max(comm_, farthest)));
  const std::int64_t items = reach_of(comm_.rank()).planes * slabs_.size * slabs_.size;
  cells_.assign(static_cast<std::size_t>(items), 0);
  place_mine(displacements, growth);
  exchange();
  check_mass();
}

void Deposit::place_mine(const Displacements& displacements, const Growth& growth) {
  io::in_threads(threads_, reach_of(comm_.rank()).planes, [&](std::int64_t begin, std::int64_t end, int) {
    place_into({begin, end}, displacements, growth);
  });
}

bool Deposit::can_reach(std::int64_t d, const tensor::Range& slots) const {
  const Reach reach = reach_of(comm_.rank());
  for (std::int64_t to = d - farthest_; to <= d + farthest_ + 1; ++to) {
    const std::int64_t index = slot_of(reach, to);
    if (index >= slots.lo && index < slots.hi) return true;
  }
  return false;
}

void Deposit::place_into(const tensor::Range& slots, const Displacements& displacements, const Growth& growth) {
  const std::int64_t size = slabs_.size;
  const tensor::Range own = slabs_.planes(comm_.rank());
  const Reach reach = reach_of(comm_.rank());
  std::size_t particle = 0;
  for (std::int64_t d = own.lo; d < own.hi; ++d) {
    if (!can_reach(d, slots)) {
      particle += static_cast<std::size_t>(size * size);
      continue;
    }
    for (std::int64_t h = 0; h < size; ++h) {
      for (std::int64_t w = 0; w < size; ++w, ++particle) {
        const Shift by_d = shift_of(displacements, growth, 0, particle);
        const std::uint32_t next = fraction_of(particle_unit, by_d.fraction);
        for (const bool is_next : {false, true}) {
          const std::int64_t index = slot_of(reach, d + by_d.cells + (is_next ? 1 : 0));
          if (index < slots.lo || index >= slots.hi) continue;
          place_in_plane({.plane = slot(index).data(), .size = size, .h = h, .w = w},
                         shift_of(displacements, growth, 1, particle), shift_of(displacements, growth, 2, particle),
                         is_next ? next : particle_unit - next);
        }
      }
    }
  }
}

void Deposit::exchange() {
  const int ranks = comm_.size(), rank = comm_.rank();
  for (int step = 1; step < ranks; ++step) exchange_with((rank + step) % ranks, (rank - step + ranks) % ranks);
}

void Deposit::exchange_with(int to, int from) {
  const Reach mine = reach_of(comm_.rank()), theirs = reach_of(from);
  const tensor::Range own = slabs_.planes(comm_.rank()), wanted = slabs_.planes(to);
  std::vector<comm::Message> sends, receives;
  for (std::int64_t d = wanted.lo; d < wanted.hi; ++d) {
    if (const std::int64_t index = slot_of(mine, d); index < mine.planes)
      sends.push_back(comm::message(to, slot(index), static_cast<int>(d)));
  }
  std::vector<std::int64_t> planes;
  for (std::int64_t d = own.lo; d < own.hi; ++d) {
    if (slot_of(theirs, d) < theirs.planes) planes.push_back(d);
  }
  const auto area = static_cast<std::size_t>(slabs_.size * slabs_.size);
  std::vector<std::uint32_t> received(planes.size() * area);
  for (std::size_t i = 0; i < planes.size(); ++i)
    receives.push_back(comm::message(from, std::span(received).subspan(i * area, area), static_cast<int>(planes[i])));
  const auto transfer = comm_.bind(sends, receives, "deposit");
  transfer->start();
  transfer->wait();
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::span<std::uint32_t> into = slot(slot_of(mine, planes[i]));
    for (std::size_t cell = 0; cell < area; ++cell) into[cell] += received[i * area + cell];
  }
}

void Deposit::check_mass() {
  const tensor::Range own = slabs_.planes(comm_.rank());
  std::uint64_t mass = 0;
  for (std::int64_t d = own.lo; d < own.hi; ++d) {
    for (const std::uint32_t units : plane(d)) mass += units;
  }
  const auto cells = static_cast<std::uint64_t>(slabs_.size) * static_cast<std::uint64_t>(slabs_.size * slabs_.size);
  if (comm::sum(comm_, mass) != cells * particle_unit)
    base::fail(base::Exit::internal, "particles were lost, or more than 65535 are in one cell; please report this");
}

}  // namespace orthant::data::generate
