#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace orthant::train {

using WallTime = std::chrono::system_clock::time_point;

/// "2026-11-30T08:00", "2026-11-30T08:00:00", or "08:00", the next time the clock shows it. Local time. Throws Error
/// (64) for anything else.
WallTime parse_stop_time(const std::string& text, WallTime now);

/// When Slurm ends the job (SLURM_JOB_END_TIME), if it says so.
std::optional<WallTime> job_end_from_environment();

/// What is known of how long things take, for a run that has to stop in time.
struct Pace {
  double step_seconds = 0;        ///< the longest so far
  double checkpoint_seconds = 0;  ///< the longest so far, or a guess
};

/// Whether a run that must have ended at `end` has to stop now, because there is no time for another step and twice
/// what a checkpoint takes.
bool must_stop(WallTime end, WallTime now, const Pace& pace);

}  // namespace orthant::train
