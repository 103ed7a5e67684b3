#include "orthant/engine/measuring_time.hpp"

#include <algorithm>
#include <utility>

namespace orthant::engine {
namespace {

constexpr double share_of_epoch = 0.1;

}  // namespace

MeasuringTime::MeasuringTime(const MeasuringLimits& limits, double step_flops, std::function<double()> now)
    : limits_(limits), step_flops_(step_flops), now_(std::move(now)), start_(now_()) {}

void MeasuringTime::note(const std::string& task, double flops, double seconds) { known_[task] = {flops, seconds}; }

double MeasuringTime::seconds_for(double flops) const {
  Work sum;
  for (const auto& [task, work] : known_) {
    sum.flops += work.flops;
    sum.seconds += work.seconds;
  }
  return sum.flops > 0 ? flops / sum.flops * sum.seconds : 0;
}

double MeasuringTime::left() const {
  const double epoch = static_cast<double>(limits_.steps_per_epoch) * seconds_for(step_flops_);
  const double limit = std::min(std::max(limits_.least_seconds, share_of_epoch * epoch), limits_.most_seconds);
  return limit - spent();
}

}  // namespace orthant::engine
