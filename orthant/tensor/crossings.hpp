#pragma once

#include "orthant/tensor/box.hpp"

#include <algorithm>

namespace orthant::tensor {

/// Calls visit(coordinate, cells) for the coordinates of [0, count) whose ranges have cells in common with `range`,
/// with these cells. The ranges rise with the coordinate at both ends; some may be empty. `guess` is a coordinate that
/// most likely is one of them: then nothing is searched.
template <class RangeOf, class Visit>
void for_each_crossing(const Range& range, int count, RangeOf range_of, Visit visit, int guess = -1) {
  if (range.lo >= range.hi) return;
  const auto is_before = [&](int coordinate) { return range_of(coordinate).hi <= range.lo; };
  int first = 0;
  if (guess >= 0 && guess < count && !is_before(guess)) {
    for (first = guess; first > 0 && !is_before(first - 1);) --first;
  } else {
    for (int length = count; length > 0;) {
      const int half = length / 2;
      const bool before = is_before(first + half);
      if (before) first += half + 1;
      length = before ? length - half - 1 : half;
    }
  }
  for (int i = first; i < count; ++i) {
    const Range other = range_of(i);
    if (other.lo >= range.hi) break;
    const Range cells{std::max(range.lo, other.lo), std::min(range.hi, other.hi)};
    if (cells.lo < cells.hi) visit(i, cells);
  }
}

}  // namespace orthant::tensor
