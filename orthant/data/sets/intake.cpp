#include "orthant/data/sets/intake.hpp"

#include "orthant/base/checked.hpp"

#include <algorithm>
#include <limits>

namespace orthant::data::sets {

std::int64_t box_bytes(const tensor::Box& box) { return base::checked_mul(tensor::volume(box), sizeof(float)); }

Intake::Intake(std::vector<Take> takes, std::int64_t mini_batch, int ranks) : takes_(std::move(takes)) {
  std::stable_sort(takes_.begin(), takes_.end(), [](const Take& a, const Take& b) { return a.n < b.n; });
  std::vector<std::int64_t> sums(static_cast<std::size_t>(ranks), 0);
  bytes_.resize(sums.size());
  auto take = takes_.begin();
  for (std::int64_t n = 0; n < mini_batch; ++n) {
    first_.push_back(static_cast<std::size_t>(take - takes_.begin()));
    for (std::size_t rank = 0; rank < sums.size(); ++rank) bytes_[rank].push_back(sums[rank]);
    for (; take != takes_.end() && take->n == n; ++take) {
      std::int64_t& sum = sums[static_cast<std::size_t>(take->rank)];
      take->offset_bytes = sum;
      sum = base::checked_add(sum, box_bytes(take->box));
    }
  }
  first_.push_back(takes_.size());
  for (std::size_t rank = 0; rank < sums.size(); ++rank) bytes_[rank].push_back(sums[rank]);
}

std::span<const Take> Intake::of(std::int64_t n) const {
  const std::size_t first = first_[static_cast<std::size_t>(n)];
  return std::span(takes_).subspan(first, first_[static_cast<std::size_t>(n) + 1] - first);
}

std::int64_t Intake::bytes(int rank, std::int64_t samples) const {
  const std::vector<std::int64_t>& below = bytes_[static_cast<std::size_t>(rank)];
  const std::int64_t whole = base::checked_mul(samples / mini_batch(), below.back());
  return base::checked_add(whole, below[static_cast<std::size_t>(samples % mini_batch())]);
}

std::int64_t Intake::most_samples(std::span<const std::int64_t> limit_bytes) const {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::size_t rank = 0; rank < bytes_.size(); ++rank) {
    const std::vector<std::int64_t>& below = bytes_[rank];
    if (below.back() == 0) continue;
    const std::int64_t rest = limit_bytes[rank] % below.back();
    const auto over = std::upper_bound(below.begin(), below.end(), rest);
    most = std::min(most, limit_bytes[rank] / below.back() * mini_batch() + (over - below.begin()) - 1);
  }
  return most;
}

}  // namespace orthant::data::sets
