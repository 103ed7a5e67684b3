#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace orthant::train {

/// Where a run stands, for one line.
struct ProgressState {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
};

/// "step 12/400  loss 0.0312  24.1 samples/s  1:05 left".
std::string progress_text(const ProgressState& state);
/// "1:05", "2:03:09".
std::string clock_text(double seconds);

/// The progress of a run on stderr: one line in place on a terminal, a line every few seconds elsewhere.
class Progress {
 public:
  /// `done`: steps of earlier runs.
  Progress(std::int64_t steps, std::int64_t mini_batch, std::int64_t done = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  /// After step `step`. The rate and the time left are estimated from all steps so far but the first, which is slower.
  void update(std::int64_t step, double loss);
  /// A line of its own.
  void note(const std::string& text);
  /// Ends the line on a terminal.
  void finish();
  [[nodiscard]] double samples_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double seconds_since_first() const;

  std::int64_t steps_, mini_batch_, done_;
  std::int64_t step_ = 0;  ///< of all
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point first_done_ = start_;
  Clock::time_point last_shown_ = start_;
  Clock::time_point now_ = start_;
};

}  // namespace orthant::train
