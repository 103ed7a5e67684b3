#include "orthant/cli/step_times.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"

#include <numeric>

namespace orthant::cli {
namespace {

double gigaflops(const StepTime& time) { return static_cast<double>(time.flops) / time.seconds * 1e-9; }
double gigabytes(const StepTime& time) { return static_cast<double>(time.bytes) / time.seconds * 1e-9; }

}  // namespace

std::vector<StepTime> step_times(const engine::Engine& engine, const engine::Trace& trace) {
  const schedule::Schedule& schedule = engine.schedule();
  std::vector<std::vector<double>> seconds(schedule.steps.size());
  for (const engine::TraceEvent& event : trace.events) {
    seconds[static_cast<std::size_t>(event.step)].push_back(static_cast<double>(event.end_ns - event.begin_ns) * 1e-9);
  }
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const schedule::Step& step = schedule.steps[i];
    StepTime time{.name = step.name,
                  .implementation = engine.implementation(static_cast<int>(i)),
                  .seconds = std::max(median_of(seconds[i]), 1e-9),
                  .flops = schedule::flops(step),
                  .bytes = schedule::bytes_moved(step)};
    times.push_back(std::move(time));
  }
  return times;
}

std::string step_table(const std::vector<StepTime>& times, double peak_gflops) {
  Table table({{"step", Table::Align::left},
               {"implementation", Table::Align::left},
               {"ms"},
               {"of step"},
               {"GFLOP/s"},
               {"of peak"},
               {"GB/s"}});
  const double total = std::accumulate(times.begin(), times.end(), 0.0,
                                       [](double sum, const StepTime& time) { return sum + time.seconds; });
  for (const StepTime& time : times) {
    const bool arithmetic = time.flops > 0;
    table.add({time.name, time.implementation, fmt::format("{:.3f}", time.seconds * 1e3),
               percent_text(time.seconds / total), arithmetic ? fmt::format("{:.1f}", gigaflops(time)) : "",
               arithmetic ? percent_text(gigaflops(time) / peak_gflops) : "",
               arithmetic ? "" : fmt::format("{:.1f}", gigabytes(time))});
  }
  table.add_line();
  table.add({"all", "", fmt::format("{:.3f}", total * 1e3), percent_text(1)});
  return table.text();
}

base::Json step_json(const std::vector<StepTime>& times, double peak_gflops) {
  base::Json steps = base::Json::array();
  for (const StepTime& time : times) {
    base::Json step{{"name", time.name},
                    {"implementation", time.implementation},
                    {"seconds", time.seconds},
                    {"flops", time.flops},
                    {"buffer_bytes", time.bytes}};
    if (time.flops > 0) {
      step["gflops"] = gigaflops(time);
      step["peak_share"] = gigaflops(time) / peak_gflops;
    } else {
      step["gigabytes_per_second"] = gigabytes(time);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace orthant::cli
