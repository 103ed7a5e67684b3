#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace orthant::engine {

/// How long a run may measure: a tenth of its first epoch or `least_seconds`, whichever is longer.
struct MeasuringLimits {
  std::int64_t steps_per_epoch = 0;  ///< 0: there are no epochs
  double least_seconds = 20;
  double most_seconds = 1e30;  ///< an upper limit, however long the epoch takes
};

/// The time of one measurement. How long a step takes, and with it the epoch, is estimated from what has been measured,
/// by floating-point operations.
class MeasuringTime {
 public:
  /// `now` gives seconds since any moment; a step has `step_flops`.
  MeasuringTime(const MeasuringLimits& limits, double step_flops, std::function<double()> now);

  /// Notes that all occurrences of a task in a step together take `seconds`. A later note on the same task replaces it.
  void note(const std::string& task, double flops, double seconds);

  [[nodiscard]] double spent() const { return now_() - start_; }
  [[nodiscard]] double left() const;
  /// The time that so many operations are expected to take; 0 if nothing is known yet.
  [[nodiscard]] double seconds_for(double flops) const;

 private:
  struct Work {
    double flops = 0, seconds = 0;
  };

  MeasuringLimits limits_;
  double step_flops_;
  std::function<double()> now_;
  double start_;
  std::map<std::string, Work> known_;
};

}  // namespace orthant::engine
