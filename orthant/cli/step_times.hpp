#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/engine/engine.hpp"

#include <string>
#include <vector>

namespace orthant::cli {

/// What one step of a schedule takes, over all traced runs.
struct StepTime {
  std::string name, implementation;
  double seconds = 0;      ///< median
  std::int64_t flops = 0;  ///< 0 where memory is the limit
  std::int64_t bytes = 0;  ///< of the buffers it touches
};

/// In the order of the schedule.
std::vector<StepTime> step_times(const engine::Engine& engine, const engine::Trace& trace);

/// A line per step, and sums per phase; `peak_gflops` is what shares refer to.
std::string step_table(const std::vector<StepTime>& times, double peak_gflops);
base::Json step_json(const std::vector<StepTime>& times, double peak_gflops);

}  // namespace orthant::cli
