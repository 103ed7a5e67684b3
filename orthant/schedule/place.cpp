#include "orthant/base/checked.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

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

bool meet(const Item& a, const Item& b) { return a.first_step <= b.last_step && b.first_step <= a.last_step; }

/// The lowest offset where `item` overlaps no placed item that lives at the same time.
std::int64_t lowest_gap(const Item& item, const std::vector<Item>& placed) {
  std::vector<const Item*> conflicts;
  for (const Item& other : placed) {
    if (meet(item, other)) conflicts.push_back(&other);
  }
  std::sort(conflicts.begin(), conflicts.end(), [](const Item* a, const Item* b) { return *a->offset < *b->offset; });
  std::int64_t offset = 0;
  for (const Item* other : conflicts) {
    if (*other->offset - offset >= item.bytes) break;
    offset = std::max(offset, round_up(*other->offset + other->bytes, item.unit()));
  }
  return offset;
}

/// Puts every item into the lowest gap, in this order. Returns the end of the highest.
std::int64_t place_in_order(const std::vector<Item>& items) {
  std::vector<Item> placed;
  std::int64_t top = 0;
  for (const Item& item : items) {
    *item.offset = lowest_gap(item, placed);
    top = std::max(top, base::checked_add(*item.offset, item.bytes));
    placed.push_back(item);
  }
  return top;
}

/// The best of a few orders: large ones first is good as a rule, but one that lives long may be better off early.
std::int64_t place_best(std::vector<Item>& items) {
  const auto life = [](const Item& item) { return static_cast<double>(item.last_step - item.first_step + 1); };
  const auto by = [&](double power) {
    std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
      return static_cast<double>(a.bytes) * std::pow(life(a), power) >
             static_cast<double>(b.bytes) * std::pow(life(b), power);
    });
    return place_in_order(items);
  };
  constexpr std::array powers{0.0, 0.1, 0.25, 0.5, 1.0};
  double best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const double power : powers) {
    const std::int64_t top = by(power);
    if (top < least) best = power;
    least = std::min(least, top);
  }
  return by(best);
}

/// Memory that begins at `begin`: what is persistent, then what is not. Returns its end.
std::int64_t place_region(std::int64_t begin, const std::vector<Item>& persistent, std::vector<Item>& others) {
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
