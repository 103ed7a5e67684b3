#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/choices.hpp"
#include "orthant/engine/measuring_time.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace orthant::engine {

/// How many of its convolutions a rank has measured. Those that there is no time for are never done.
struct MeasuringProgress {
  int done = 0, tasks = 0;
  double seconds_left = 0;
  MeasuringLimits limits{};  ///< that hold for this job
};

/// Counts are of all ranks.
struct Measured {
  int tasks = 0;       ///< chosen by measurement, now
  int left_tasks = 0;  ///< not measured yet: they follow the rule
  double seconds = 0;  ///< what this rank took
};

struct ChooseOptions {
  int threads = 1;
  /// Computes every convolution that can be computed this way so, and the others by the rule, whatever the plan says.
  model::Algorithm preferred = model::Algorithm::automatic;
  bool measure = false;  ///< otherwise the rule decides, by shape alone
  /// The largest that may be chosen. What a plan or `preferred` names may have more.
  model::ErrorClass errors = model::ErrorClass::exact;
  std::string cache_path{};  ///< empty: nothing is remembered
  /// Convolutions that need more memory to be tried keep the rule. If not set: half of what the ranks have available.
  std::optional<std::int64_t> most_bytes{};
  MeasuringLimits limits{};
  /// Convolutions of more operations per thread are tried with a part of their samples.
  double whole_flops = 1e10;
  /// Called on every rank that measures: before and after every convolution.
  std::function<void(const MeasuringProgress&)> progress = [](const MeasuringProgress&) {};
  std::function<void(const std::string& why)> ignored = [](const std::string&) {};  ///< on rank 0: the cache is
  std::function<void()> forgotten = [] {};  ///< called on rank 0 if the cache cannot be written
  /// Called on rank 0 if the ranks run on so many sorts of processors, which then share one choice for each task.
  std::function<void(int)> mixed_processors = [](int) {};
  bool speaks = true;  ///< false: a rank below this one has the same tasks on the same processor, and speaks for both
  /// Called on every rank when all is measured, or known from earlier runs.
  std::function<void(const Measured&)> finished = [](const Measured&) {};
  /// How time is told and a kernel's run is timed. Tests have times of their own, and run nothing.
  std::function<double()> now = clock_seconds;
  std::function<double(const model::ConvTask&, model::Algorithm, const std::function<void()>& run)> seconds =
      [](const model::ConvTask&, model::Algorithm, const std::function<void()>& run) { return shortest_run(run); };
};

struct FastestAlgorithms {
  Choices choices;  ///< by task_key
  Measured measured;
};

/// Collective. The fastest algorithm for each convolution of the schedule whose algorithm is automatic, by the cache or
/// by measurement, the most expensive first; all ranks get those of all. What there was no time or memory to measure is
/// left out, and not remembered.
FastestAlgorithms find_fastest(const schedule::Schedule& schedule, comm::Comm& comm, const ChooseOptions& asked);

}  // namespace orthant::engine
