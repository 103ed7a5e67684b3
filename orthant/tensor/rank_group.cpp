#include "orthant/tensor/rank_group.hpp"

#include <algorithm>

namespace orthant::tensor {

RankGroup::RankGroup(const Distribution& distribution, int rank, std::span<const Dim> fixed) {
  if (!takes_part(distribution, rank)) return;
  Grid at = coordinates(distribution.grid, rank - distribution.first_rank);
  Grid free = distribution.grid;
  for (const Dim dim : all_dims) {
    const bool is_fixed = std::find(fixed.begin(), fixed.end(), dim) != fixed.end();
    (is_fixed ? free : at)[dim] = is_fixed ? 1 : 0;
  }
  first_ = distribution.first_rank + index_of(distribution.grid, at);
  size_ = parts(free);
  int stride = parts(distribution.grid);
  for (const Dim dim : all_dims) {
    stride /= distribution.grid[dim];
    if (free[dim] == 1) continue;
    const Digit digit{.count = free[dim], .stride = stride};
    Digit* before = digits_ > 0 ? &digit_[static_cast<std::size_t>(digits_) - 1] : nullptr;
    if (before && before->stride == digit.count * digit.stride) {
      *before = {.count = before->count * digit.count, .stride = digit.stride};
    } else {
      digit_[static_cast<std::size_t>(digits_++)] = digit;
    }
  }
}

int RankGroup::operator[](int place) const {
  int rank = first_;
  for (int i = digits_ - 1; i >= 0; --i) {
    const Digit& digit = digit_[static_cast<std::size_t>(i)];
    rank += place % digit.count * digit.stride;
    place /= digit.count;
  }
  return rank;
}

int RankGroup::place_of(int rank) const {
  int rest = rank - first_;
  if (size_ == 0 || rest < 0) return -1;
  int place = 0;
  for (int i = 0; i < digits_; ++i) {
    const Digit& digit = digit_[static_cast<std::size_t>(i)];
    const int at = rest / digit.stride;
    if (at >= digit.count) return -1;
    place = place * digit.count + at;
    rest -= at * digit.stride;
  }
  return rest == 0 ? place : -1;
}

std::vector<int> RankGroup::to_list() const {
  std::vector<int> ranks;
  if (size_ == 0) return ranks;
  ranks.reserve(static_cast<std::size_t>(size_));
  ranks.push_back(first_);
  // The list so far, of the faster digits, once more for each step of the next one.
  for (int i = digits_ - 1; i >= 0; --i) {
    const Digit& digit = digit_[static_cast<std::size_t>(i)];
    const std::size_t block = ranks.size();
    for (int step = 1; step < digit.count; ++step) {
      for (std::size_t k = 0; k < block; ++k) ranks.push_back(ranks[k] + step * digit.stride);
    }
  }
  return ranks;
}

}  // namespace orthant::tensor
