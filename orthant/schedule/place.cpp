#include "orthant/base/checked.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>
#include <numeric>

namespace orthant::schedule {
namespace {

constexpr std::int64_t alignment = 64;

std::int64_t aligned(std::int64_t bytes) { return base::checked_add(bytes, alignment - 1) / alignment * alignment; }

/// Memory that must stay untouched from one step to another.
struct Item {
  std::int64_t bytes = 0;
  int first_step = 0, last_step = 0;
  std::int64_t* offset = nullptr;
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
    offset = std::max(offset, *other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

Placement place(const Schedule& schedule, const std::vector<std::int64_t>& scratch_bytes) {
  Placement placement;
  placement.offsets.assign(schedule.buffers.size(), 0);
  placement.scratch_offsets.assign(schedule.steps.size(), 0);

  std::vector<Item> items;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.inside >= 0) continue;
    if (buffer.persistent) {
      placement.offsets[i] = placement.persistent_bytes;
      placement.persistent_bytes = base::checked_add(placement.persistent_bytes, aligned(buffer.bytes));
    } else if (buffer.first_step >= 0) {
      items.push_back({aligned(buffer.bytes), buffer.first_step, buffer.last_step, &placement.offsets[i]});
    }
  }
  for (std::size_t i = 0; i < scratch_bytes.size(); ++i) {
    const int step = static_cast<int>(i);
    if (scratch_bytes[i] > 0) items.push_back({aligned(scratch_bytes[i]), step, step, &placement.scratch_offsets[i]});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.bytes > b.bytes; });

  std::vector<Item> placed;
  std::int64_t top = 0;
  for (const Item& item : items) {
    *item.offset = lowest_gap(item, placed);
    top = std::max(top, base::checked_add(*item.offset, item.bytes));
    placed.push_back(item);
  }
  for (const Item& item : items) *item.offset += placement.persistent_bytes;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.inside >= 0)
      placement.offsets[i] = placement.offsets[static_cast<std::size_t>(buffer.inside)] + buffer.offset_bytes;
  }
  placement.arena_bytes = base::checked_add(placement.persistent_bytes, top);
  return placement;
}

}  // namespace orthant::schedule
