#include "orthant/schedule/byte_set.hpp"

#include <algorithm>
#include <array>

namespace orthant::schedule {

using tensor::Range;

ByteSet::ByteSet(const tensor::Layout& layout, std::int64_t item_bytes, std::int64_t first_byte) {
  struct Walk {
    std::int64_t stride = 0, count = 0;
  };
  std::vector<Walk> walks;
  for (const tensor::Dim dim : tensor::all_dims) {
    if (layout.extents[dim] <= 0) return;
    if (layout.extents[dim] > 1) walks.push_back({layout.strides[dim] * item_bytes, layout.extents[dim]});
  }
  // The dims that are walked without a gap make one run; the others say where runs begin.
  std::sort(walks.begin(), walks.end(), [](const Walk& a, const Walk& b) { return a.stride > b.stride; });
  std::int64_t run = item_bytes;
  while (!walks.empty() && walks.back().stride == run) {
    run *= walks.back().count;
    walks.pop_back();
  }
  std::array<std::int64_t, 5> at{};
  for (bool more = true; more;) {
    std::int64_t begin = first_byte + layout.offset * item_bytes;
    for (std::size_t i = 0; i < walks.size(); ++i) begin += at.at(i) * walks[i].stride;
    append({begin, begin + run});
    more = false;
    for (std::size_t i = walks.size(); i > 0 && !more; --i) {
      more = ++at.at(i - 1) < walks[i - 1].count;
      if (!more) at.at(i - 1) = 0;
    }
  }
}

void ByteSet::append(const Range& bytes) {
  if (bytes.hi <= bytes.lo) return;
  if (!ranges_.empty() && bytes.lo <= ranges_.back().hi) {
    ranges_.back().hi = std::max(ranges_.back().hi, bytes.hi);
  } else {
    ranges_.push_back(bytes);
  }
}

Range ByteSet::missing(const ByteSet& wanted) const {
  auto here = ranges_.begin();
  for (const Range& range : wanted.ranges_) {
    here = std::partition_point(here, ranges_.end(), [&](const Range& one) { return one.hi <= range.lo; });
    if (here == ranges_.end()) return range;
    if (here->lo > range.lo) return {range.lo, std::min(range.hi, here->lo)};
    if (here->hi < range.hi) return {here->hi, range.hi};
  }
  return {};
}

Range ByteSet::common(const ByteSet& other) const {
  auto here = ranges_.begin();
  for (const Range& range : other.ranges_) {
    here = std::partition_point(here, ranges_.end(), [&](const Range& one) { return one.hi <= range.lo; });
    if (here == ranges_.end()) return {};
    if (here->lo < range.hi) return {std::max(here->lo, range.lo), std::min(here->hi, range.hi)};
  }
  return {};
}

void ByteSet::add(const ByteSet& other) {
  if (covers(other)) return;
  const std::vector<Range> mine = std::move(ranges_);
  std::vector<Range> all(mine.size() + other.ranges_.size());
  std::merge(mine.begin(), mine.end(), other.ranges_.begin(), other.ranges_.end(), all.begin(),
             [](const Range& a, const Range& b) { return a.lo < b.lo; });
  ranges_.clear();
  for (const Range& range : all) append(range);
}

}  // namespace orthant::schedule
