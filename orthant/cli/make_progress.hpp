#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/train/stop_signal.hpp"

#include <chrono>
#include <string>

namespace orthant::cli {

/// The progress of samples being made: one line on stderr of rank 0, in place on a terminal, every few seconds
/// elsewhere. SIGINT and SIGTERM stop at the next step.
class MakeProgress {
 public:
  MakeProgress(comm::Comm& comm, std::string what, std::int64_t samples, std::int64_t steps_per_sample);
  MakeProgress(const MakeProgress&) = delete;
  MakeProgress& operator=(const MakeProgress&) = delete;
  ~MakeProgress();

  /// Collective. After a step of `samples` samples at once. Throws CollectiveError (85) if a signal asked any rank to
  /// stop.
  void step(std::int64_t samples = 1);

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  comm::Comm& comm_;
  std::string what_;
  std::int64_t samples_, steps_per_sample_;
  std::int64_t done_ = 0;
  bool terminal_, shown_ = false;
  train::StopSignal stop_;
  Clock::time_point start_ = Clock::now(), last_shown_ = start_;
};

}  // namespace orthant::cli
