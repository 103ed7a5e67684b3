#include "orthant/microbatch/candidate.hpp"

namespace orthant::microbatch {

std::vector<std::int64_t> piece_sizes(Policy policy, std::int64_t samples) {
  std::vector<std::int64_t> sizes;
  if (policy == Policy::power_of_two) {
    for (std::int64_t size = 1; size < samples; size *= 2) sizes.push_back(size);
  }
  if (policy == Policy::all) {
    for (std::int64_t size = 1; size < samples; ++size) sizes.push_back(size);
  }
  sizes.push_back(samples);
  return sizes;
}

}  // namespace orthant::microbatch
