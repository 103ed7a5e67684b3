#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace orthant::engine {

struct ChooseOptions {
  int threads = 1;
  std::string cache_path;  ///< empty: nothing is remembered
  /// Convolutions that need more memory to be tried keep the rule.
  std::int64_t most_bytes = std::int64_t{1} << 62;
  std::function<void(int)> measuring{};  ///< called on every rank before it measures so many tasks, if any
  std::function<void()> forgotten{};     ///< called on rank 0 if the cache cannot be written
};

/// Collective. Gives every convolution of the schedule whose algorithm is automatic the one that is fastest here, by
/// the cache or by trying all. Ranks with the same task take the same.
void choose_algorithms(schedule::Schedule& schedule, comm::Comm& comm, const ChooseOptions& options);

/// Where choices are remembered: ORTHANT_CACHE, or kernels.json in orthant's folder of the user's cache; empty if there
/// is no such place.
std::string choice_cache_path();

}  // namespace orthant::engine
