#include "orthant/data/sets/intake.hpp"

#include "orthant/base/checked.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace orthant::data::sets {

std::int64_t box_bytes(const tensor::Box& box) { return base::checked_mul(tensor::volume(box), sizeof(float)); }

Intake::Intake(std::vector<Take> takes, std::int64_t mini_batch, int ranks)
    : takes_(std::move(takes)), sums_(static_cast<std::size_t>(ranks)) {
  std::stable_sort(takes_.begin(), takes_.end(), [](const Take& a, const Take& b) { return a.n < b.n; });
  auto take = takes_.begin();
  for (std::int64_t n = 0; n < mini_batch; ++n) {
    first_.push_back(static_cast<std::size_t>(take - takes_.begin()));
    for (; take != takes_.end() && take->n == n; ++take) {
      std::vector<Sum>& sums = sums_[static_cast<std::size_t>(take->rank)];
      take->offset_bytes = sums.empty() ? 0 : sums.back().bytes;
      sums.push_back({.n = n, .bytes = base::checked_add(take->offset_bytes, box_bytes(take->box))});
    }
  }
  first_.push_back(takes_.size());
}

std::span<const Take> Intake::of(std::int64_t n) const {
  const std::size_t first = first_[static_cast<std::size_t>(n)];
  return std::span(takes_).subspan(first, first_[static_cast<std::size_t>(n) + 1] - first);
}

std::span<const Take> Intake::of(std::int64_t n, int rank) const {
  const std::span<const Take> all = of(n);
  const auto begin = std::partition_point(all.begin(), all.end(), [&](const Take& take) { return take.rank < rank; });
  const auto end = std::partition_point(begin, all.end(), [&](const Take& take) { return take.rank == rank; });
  return all.subspan(static_cast<std::size_t>(begin - all.begin()), static_cast<std::size_t>(end - begin));
}

std::int64_t Intake::bytes(int rank, std::int64_t samples) const {
  const std::vector<Sum>& sums = sums_[static_cast<std::size_t>(rank)];
  if (sums.empty()) return 0;
  const auto end = std::lower_bound(sums.begin(), sums.end(), samples % mini_batch(),
                                    [](const Sum& sum, std::int64_t n) { return sum.n < n; });
  return base::checked_add(base::checked_mul(samples / mini_batch(), sums.back().bytes),
                           end == sums.begin() ? 0 : std::prev(end)->bytes);
}

std::int64_t Intake::most_samples(int rank, std::int64_t limit_bytes) const {
  const std::vector<Sum>& sums = sums_[static_cast<std::size_t>(rank)];
  if (sums.empty() || sums.back().bytes == 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t rest = limit_bytes % sums.back().bytes;
  const auto over = std::upper_bound(sums.begin(), sums.end(), rest,
                                     [](std::int64_t bytes, const Sum& sum) { return bytes < sum.bytes; });
  return limit_bytes / sums.back().bytes * mini_batch() + over->n;
}

}  // namespace orthant::data::sets
