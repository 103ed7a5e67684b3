#include "orthant/base/checked.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace orthant::schedule {
namespace {

constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t page_bytes = 4096;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return base::checked_add(bytes, unit - 1) / unit * unit;
}

/// Memory that must stay untouched from one step to another.
struct Item {
  std::int64_t bytes = 0;
  int first_step = 0, last_step = 0;
  std::int64_t* offset = nullptr;
  std::int64_t least_unit = line_bytes;
  /// What it begins at a multiple of: kernels are some percent faster on tensors that begin at a page.
  [[nodiscard]] std::int64_t unit() const { return bytes < 16 * page_bytes ? least_unit : page_bytes; }
};

/// An item that has its place.
struct Placed {
  std::int64_t offset = 0, end = 0;
  int first_step = 0, last_step = 0;
};

/// The lowest offset where `item` overlaps no placed item that lives at the same time. These are sorted by offset.
std::int64_t lowest_gap(const Item& item, const std::vector<Placed>& placed) {
  std::int64_t offset = 0;
  for (const Placed& other : placed) {
    if (item.first_step > other.last_step || other.first_step > item.last_step) continue;
    if (other.offset - offset >= item.bytes) break;
    offset = std::max(offset, round_up(other.end, item.unit()));
  }
  return offset;
}

/// Puts every item into the lowest gap, in this order. Returns the end of the highest, or where it gave up because that
/// is not below `least`.
std::int64_t place_in_order(const std::vector<const Item*>& items, std::int64_t least,
                            std::vector<std::int64_t>& offsets) {
  std::vector<Placed> placed;
  placed.reserve(items.size());
  offsets.clear();
  std::int64_t top = 0;
  for (const Item* item : items) {
    const std::int64_t offset = lowest_gap(*item, placed);
    const Placed here{offset, base::checked_add(offset, item->bytes), item->first_step, item->last_step};
    top = std::max(top, here.end);
    if (top >= least) return top;
    offsets.push_back(offset);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here,
                                   [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                  here);
  }
  return top;
}

/// The best of a few orders: large ones first is good as a rule, but one that lives long may be better off early.
std::int64_t place_best(const std::vector<Item>& items) {
  constexpr std::array powers{0.0, 0.1, 0.25, 0.5, 1.0};
  if (items.empty()) return 0;
  std::vector<const Item*> order;
  for (const Item& item : items) order.push_back(&item);
  std::vector<std::int64_t> offsets;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const double power : powers) {
    std::vector<std::pair<double, const Item*>> weighed;
    for (const Item* item : order) {
      const auto life = static_cast<double>(item->last_step - item->first_step + 1);
      weighed.emplace_back(static_cast<double>(item->bytes) * std::pow(life, power), item);
    }
    std::stable_sort(weighed.begin(), weighed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::transform(weighed.begin(), weighed.end(), order.begin(), [](const auto& one) { return one.second; });
    const std::int64_t top = place_in_order(order, least, offsets);
    if (top >= least) continue;
    least = top;
    for (std::size_t i = 0; i < order.size(); ++i) *order[i]->offset = offsets[i];
  }
  return least;
}

/// Memory that begins at `begin`: what is persistent, then what is not. Returns its end.
std::int64_t place_region(std::int64_t begin, const std::vector<Item>& persistent, const std::vector<Item>& others) {
  for (const Item& item : persistent) {
    *item.offset = round_up(begin, item.unit());
    begin = base::checked_add(*item.offset, item.bytes);
  }
  begin = round_up(begin, page_bytes);
  const std::int64_t top = place_best(others);
  for (const Item& item : others) *item.offset += begin;
  return base::checked_add(begin, top);
}

}  // namespace

std::int64_t whole_pages(std::int64_t bytes) { return round_up(bytes, page_bytes); }

Placement place(const Schedule& schedule) {
  Placement placement;
  placement.offsets.assign(schedule.buffers.size(), 0);
  placement.scratch_offsets.assign(schedule.steps.size(), 0);

  struct Region {
    std::vector<Item> persistent, others;
  };
  Region shared;
  Region own;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.inside >= 0 || buffer.keeper >= 0) continue;
    Region& region = buffer.shared ? shared : own;
    // Ranks that have memory in common have whole pages of it.
    const bool common = buffer.shared && buffer.persistent;
    const Item item{.bytes = common ? whole_pages(buffer.bytes) : round_up(buffer.bytes, line_bytes),
                    .first_step = buffer.first_step,
                    .last_step = buffer.last_step,
                    .offset = &placement.offsets[i],
                    .least_unit = common ? page_bytes : line_bytes};
    if (buffer.persistent) {
      region.persistent.push_back(item);
      placement.persistent_bytes = base::checked_add(placement.persistent_bytes, item.bytes);
    } else if (buffer.first_step >= 0) {
      region.others.push_back(item);
    }
  }
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const int step = static_cast<int>(i);
    const std::int64_t bytes = schedule.steps[i].scratch_bytes;
    if (bytes > 0) own.others.push_back({round_up(bytes, line_bytes), step, step, &placement.scratch_offsets[i]});
  }
  placement.shared_bytes = round_up(place_region(0, shared.persistent, shared.others), page_bytes);
  placement.arena_bytes = place_region(placement.shared_bytes, own.persistent, own.others);
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.inside >= 0)
      placement.offsets[i] = placement.offsets[static_cast<std::size_t>(buffer.inside)] + buffer.offset_bytes;
  }
  return placement;
}

}  // namespace orthant::schedule
