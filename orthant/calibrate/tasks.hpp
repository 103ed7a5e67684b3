#pragma once

#include "orthant/calibrate/replay.hpp"
#include "orthant/comm/comm.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/oracle/profile.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace orthant::calibrate {

/// By oracle::task_key().
using TaskTimes = std::map<std::string, oracle::MeasuredTask>;

/// Runs and returns the seconds of the clock.
double timed_run(const model::Task& task, const std::function<void()>& run);

struct TaskOptions {
  int threads = 1;
  bool all_ways = true;          ///< also algorithms that a schedule does not name
  double seconds = 1e30;         ///< no pass begins after so many
  std::int64_t most_bytes = -1;  ///< larger schedules are left out; -1: what the ranks have available
  /// How a run is timed. Tests have times of their own.
  std::function<double(const model::Task&, const std::function<void()>& run)> timed = timed_run;
  std::function<double()> now = engine::clock_seconds;
};
/// Which way of each step a pass runs, and when there are runs enough. Knows no clock.
class Passes {
 public:
  /// `known` need not be measured again.
  Passes(const std::vector<ReplayStep>& steps, const TaskTimes& known);

  /// True if there is anything that is not known.
  [[nodiscard]] bool has_news() const { return has_news_; }
  /// The way in which to run a step next: one that has too few runs, or the fastest.
  [[nodiscard]] std::size_t way(std::size_t step) const;
  void note(std::size_t step, std::size_t way, double seconds);
  /// To be called after each pass. True while another one is needed.
  bool wants_another(double pass_seconds);
  /// What was not known and has been run.
  [[nodiscard]] TaskTimes results() const;

 private:
  struct Runs {
    std::string key;
    bool known = false;
    std::int64_t count = 0;  ///< in all steps of the group
    double least = 1e30;
  };
  /// Steps with equal tasks.
  struct Group {
    std::vector<std::size_t> steps{};
    std::vector<Runs> ways{};
    std::size_t best = 0;
  };
  [[nodiscard]] static bool wants(const Group& group, const Runs& runs);

  const std::vector<ReplayStep>& steps_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;                      ///< per step
  std::vector<std::vector<std::vector<double>>> seconds_;  ///< per step and way
  bool has_news_ = false;
  int settled_passes_ = 0;  ///< in which every step ran in its fastest way
  double settled_seconds_ = 0;
};

/// Collective. What the tasks of this rank's schedule take while the other ranks run theirs, in all ways; those of all
/// ranks together, on all ranks. Nothing if the schedule does not fit into memory on some rank, or all is known.
TaskTimes measure_tasks(const schedule::Schedule& schedule, comm::Comm& comm, const TaskTimes& known,
                        const TaskOptions& options);

}  // namespace orthant::calibrate
