#include "orthant/schedule/byte_set.hpp"

#include <algorithm>
#include <array>

namespace orthant::schedule {
namespace {

using tensor::Range;

constexpr Range no_range{};

Range overlap(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

/// A layout as runs of bytes without gaps, which begin where `steps` say; the widest step comes first.
struct Runs {
  struct Step {
    std::int64_t stride = 0, count = 0;
  };
  std::vector<Step> steps;
  std::int64_t run = 0;  ///< bytes; 0 without items
};

Runs runs_of(const tensor::Layout& layout, std::int64_t item_bytes) {
  Runs runs{.steps = {}, .run = item_bytes};
  for (const tensor::Dim dim : tensor::all_dims) {
    if (layout.extents[dim] <= 0) return {};
    if (layout.extents[dim] > 1) runs.steps.push_back({layout.strides[dim] * item_bytes, layout.extents[dim]});
  }
  std::sort(runs.steps.begin(), runs.steps.end(), [](const auto& a, const auto& b) { return a.stride > b.stride; });
  while (!runs.steps.empty() && runs.steps.back().stride == runs.run) {
    runs.run *= runs.steps.back().count;
    runs.steps.pop_back();
  }
  return runs;
}

}  // namespace

void Ranges::append(const Range& range) {
  if (range.hi <= range.lo) return;
  if (!ranges_.empty() && range.lo <= ranges_.back().hi) {
    ranges_.back().hi = std::max(ranges_.back().hi, range.hi);
  } else {
    ranges_.push_back(range);
  }
}

void Ranges::add(const Range& range) {
  if (ranges_.empty() || range.lo >= ranges_.back().lo) return append(range);
  Ranges one;
  one.append(range);
  add(one);
}

void Ranges::add(const Ranges& other) {
  if (other.ranges_.empty()) return;
  if (ranges_.empty() || other.ranges_.front().lo >= ranges_.back().lo) {
    for (const Range& range : other.ranges_) append(range);
    return;
  }
  if (missing(other) == no_range) return;
  const std::vector<Range> mine = std::move(ranges_);
  std::vector<Range> all(mine.size() + other.ranges_.size());
  std::merge(mine.begin(), mine.end(), other.ranges_.begin(), other.ranges_.end(), all.begin(),
             [](const Range& a, const Range& b) { return a.lo < b.lo; });
  ranges_.clear();
  for (const Range& range : all) append(range);
}

Range Ranges::missing(const Ranges& wanted) const {
  auto here = ranges_.begin();
  for (const Range& range : wanted.ranges_) {
    here = std::partition_point(here, ranges_.end(), [&](const Range& one) { return one.hi <= range.lo; });
    if (here == ranges_.end()) return range;
    if (here->lo > range.lo) return {range.lo, std::min(range.hi, here->lo)};
    if (here->hi < range.hi) return {here->hi, range.hi};
  }
  return no_range;
}

Range Ranges::common(const Ranges& other) const {
  auto here = ranges_.begin();
  for (const Range& range : other.ranges_) {
    here = std::partition_point(here, ranges_.end(), [&](const Range& one) { return one.hi <= range.lo; });
    if (here == ranges_.end()) return no_range;
    if (here->lo < range.hi) return overlap(*here, range);
  }
  return no_range;
}

ByteSet::ByteSet(std::int64_t period, const tensor::Layout& layout, std::int64_t item_bytes, std::int64_t first_byte)
    : period_(period) {
  Runs runs = runs_of(layout, item_bytes);
  if (runs.run == 0) return;
  Runs::Step last{.stride = period, .count = 1};
  if (!runs.steps.empty()) {
    last = runs.steps.back();
    runs.steps.pop_back();
  }
  std::array<std::int64_t, 5> at{};
  for (bool more = true; more;) {
    std::int64_t begin = first_byte + layout.offset * item_bytes;
    for (std::size_t i = 0; i < runs.steps.size(); ++i) begin += at.at(i) * runs.steps[i].stride;
    add_runs(begin, runs.run, last.stride, last.count);
    more = false;
    for (std::size_t i = runs.steps.size(); i > 0 && !more; --i) {
      more = ++at.at(i - 1) < runs.steps[i - 1].count;
      if (!more) at.at(i - 1) = 0;
    }
  }
}

/// `count` runs, `stride` apart. Those that repeat from block to block are the same bytes of many blocks, or of two
/// where they reach into the next.
void ByteSet::add_runs(std::int64_t begin, std::int64_t run, std::int64_t stride, std::int64_t count) {
  if (stride != period_ || run > period_) {
    for (std::int64_t i = 0; i < count; ++i) add(Range{begin + i * stride, begin + i * stride + run});
    return;
  }
  const std::int64_t block = begin / period_, residue = begin % period_;
  Ranges blocks;
  blocks.add(Range{block, block + count});
  add({residue, std::min(residue + run, period_)}, blocks);
  if (residue + run <= period_) return;
  Ranges next;
  next.add(Range{block + 1, block + 1 + count});
  add({0, residue + run - period_}, next);
}

void ByteSet::add(const Range& bytes) {
  if (bytes.hi <= bytes.lo) return;
  const auto add_part = [&](std::int64_t lo, std::int64_t hi, const Range& blocks) {
    Ranges list;
    list.add(blocks);
    if (lo < hi && blocks.lo < blocks.hi) add(Range{lo, hi}, list);
  };
  const std::int64_t first = bytes.lo / period_, last = (bytes.hi - 1) / period_;
  const std::int64_t lo = bytes.lo % period_, hi = bytes.hi - last * period_;
  if (first == last) return add_part(lo, hi, {first, first + 1});
  add_part(lo, period_, {first, first + 1});
  add_part(0, period_, {first + 1, last});
  add_part(0, hi, {last, last + 1});
}

void ByteSet::add(const Range& residues, const Ranges& blocks) {
  const auto same =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.residues == residues; });
  if (same != lanes_.end()) return same->blocks.add(blocks);
  std::vector<Lane> lanes;
  std::int64_t at = residues.lo;  // what is below is done
  const auto add_new = [&](std::int64_t end) {
    if (at < end) lanes.push_back({.residues = {at, end}, .blocks = blocks});
    at = std::max(at, end);
  };
  for (Lane& lane : lanes_) {
    const Range both = overlap(lane.residues, residues);
    if (both.lo >= both.hi) {
      if (lane.residues.lo >= residues.hi) add_new(residues.hi);
      lanes.push_back(std::move(lane));
      continue;
    }
    add_new(both.lo);
    if (lane.residues.lo < both.lo) lanes.push_back({.residues = {lane.residues.lo, both.lo}, .blocks = lane.blocks});
    lanes.push_back({.residues = both, .blocks = lane.blocks});
    lanes.back().blocks.add(blocks);
    if (both.hi < lane.residues.hi)
      lanes.push_back({.residues = {both.hi, lane.residues.hi}, .blocks = std::move(lane.blocks)});
    at = both.hi;
  }
  add_new(residues.hi);
  lanes_ = std::move(lanes);
}

void ByteSet::add(const ByteSet& other) {
  for (const Lane& lane : other.lanes_) add(lane.residues, lane.blocks);
}

Range ByteSet::bytes_of(const Range& residues, const Range& blocks) const {
  const std::int64_t begin = blocks.lo * period_;
  const bool whole = residues == Range{0, period_};
  return {begin + residues.lo, whole ? blocks.hi * period_ : begin + residues.hi};
}

Range ByteSet::missing(const ByteSet& wanted) const {
  for (const Lane& lane : wanted.lanes_) {
    std::int64_t at = lane.residues.lo;
    for (const Lane& mine : lanes_) {
      const Range both = overlap(mine.residues, lane.residues);
      if (both.lo >= both.hi) continue;
      if (at < both.lo) break;
      if (const Range blocks = mine.blocks.missing(lane.blocks); blocks != no_range) return bytes_of(both, blocks);
      at = both.hi;
    }
    if (at < lane.residues.hi) return bytes_of({at, lane.residues.hi}, Ranges().missing(lane.blocks));
  }
  return no_range;
}

Range ByteSet::common(const ByteSet& other) const {
  for (const Lane& lane : other.lanes_) {
    for (const Lane& mine : lanes_) {
      const Range both = overlap(mine.residues, lane.residues);
      if (both.lo >= both.hi) continue;
      if (const Range blocks = mine.blocks.common(lane.blocks); blocks != no_range) return bytes_of(both, blocks);
    }
  }
  return no_range;
}

std::int64_t period_of(const tensor::Layout& layout, std::int64_t item_bytes) {
  const Runs runs = runs_of(layout, item_bytes);
  return runs.steps.empty() ? 0 : runs.steps.back().stride;
}

}  // namespace orthant::schedule
