#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/measuring_time.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace orthant::engine {

/// Where a rank is with its convolutions. Those that there is no time for are never done.
struct MeasuringProgress {
  int done = 0, tasks = 0;
  double seconds_left = 0;
};

struct ChooseOptions {
  int threads = 1;
  std::string cache_path{};  ///< empty: nothing is remembered
  /// Convolutions that need more memory to be tried keep the rule.
  std::int64_t most_bytes = std::int64_t{1} << 62;
  MeasuringLimits limits{};
  /// Convolutions of more operations per thread are tried with a part of their samples.
  double whole_flops = 1e10;
  /// Called on every rank that measures: before and after every convolution.
  std::function<void(const MeasuringProgress&)> progress = [](const MeasuringProgress&) {};
  std::function<void()> forgotten = [] {};  ///< called on rank 0 if the cache cannot be written
  /// How time is told and a kernel's run is timed. Tests have times of their own, and run nothing.
  std::function<double()> now = clock_seconds;
  std::function<double(const model::ConvTask&, model::Algorithm, const std::function<void()>& run)> seconds =
      [](const model::ConvTask&, model::Algorithm, const std::function<void()>& run) { return shortest_run(run); };
};

/// Of all ranks, but for the time.
struct Measured {
  int tasks = 0;       ///< chosen by measurement, now
  int left_tasks = 0;  ///< not measured yet: they follow the rule
  double seconds = 0;  ///< what this rank took
};

/// Collective. Gives every convolution of the schedule whose algorithm is automatic the one that is fastest here, by
/// the cache or by measurement, the most expensive first. What there was no time or memory to measure stays automatic
/// and is not remembered. Ranks with the same task take the same algorithm.
Measured choose_algorithms(schedule::Schedule& schedule, comm::Comm& comm, const ChooseOptions& options);

/// Where choices are remembered: ORTHANT_CACHE, or kernels.json in orthant's folder of the user's cache; empty if there
/// is no such place.
std::string choice_cache_path();

}  // namespace orthant::engine
