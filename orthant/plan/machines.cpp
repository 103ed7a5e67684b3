#include "orthant/plan/machines.hpp"

#include <algorithm>

namespace orthant::plan {

Machines::Machines(const std::vector<int>& ranks_per_machine) {
  int end = 0;
  for (const int ranks : ranks_per_machine) ends_.push_back(end += ranks);
}

Machines Machines::alike(int ranks, int per_machine) {
  Machines machines;
  for (int end = 0; end < ranks;) machines.ends_.push_back(end = std::min(ranks, end + std::max(per_machine, 1)));
  return machines;
}

tensor::Range Machines::neighbours(int rank) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), rank);
  if (end == ends_.end()) return {rank, rank + 1};
  return {end == ends_.begin() ? 0 : *(end - 1), *end};
}

}  // namespace orthant::plan
