#include "orthant/base/error.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/plan_compare.hpp"

#include <algorithm>
#include <map>

namespace orthant::cli {
namespace {

using base::Json;

/// All runs of the steps of one rank.
struct TracedSteps {
  std::vector<std::string> names;
  std::vector<std::vector<double>> seconds;  ///< per step and run
  std::vector<double> runs;                  ///< from the begin of the first step to the end of the last
  double run_began = 0;
  std::size_t last_step = 0;

  void add(std::size_t step, const std::string& name, double begin, double end) {
    if (runs.empty() || step <= last_step) {
      run_began = begin;
      runs.push_back(0);
    }
    last_step = step;
    if (names.size() <= step) {
      names.resize(step + 1);
      seconds.resize(step + 1);
    }
    names[step] = name;
    seconds[step].push_back(end - begin);
    runs.back() = end - run_began;
  }
};

MeasuredRun from_trace(const Json& events) {
  constexpr std::size_t most_steps = 10'000'000;
  std::map<int, TracedSteps> ranks;
  for (const Json& event : events) {
    if (event.at("ph") != "X" || event.at("tid") != 0 || !event.at("args").contains("step")) continue;
    const auto step = event.at("args").at("step").get<std::size_t>();
    if (step > most_steps) continue;
    const double begin = event.at("ts").get<double>() * 1e-6;
    ranks[event.at("pid").get<int>()].add(step, event.at("name"), begin, begin + event.at("dur").get<double>() * 1e-6);
  }
  MeasuredRun run{.ranks = static_cast<int>(ranks.size())};
  for (const auto& [rank, traced] : ranks) {
    const double seconds = median_of(traced.runs);
    if (seconds <= run.seconds) continue;
    run.seconds = seconds;
    run.rank = rank;
    run.steps.clear();
    for (std::size_t i = 0; i < traced.names.size(); ++i)
      run.steps.push_back({traced.names[i], traced.seconds[i].empty() ? 0 : median_of(traced.seconds[i])});
  }
  return run;
}

MeasuredRun from_bench(const Json& document) {
  MeasuredRun run{.ranks = document.at("ranks").get<int>(), .seconds = document.at("seconds_median").get<double>()};
  for (const Json& step : document.at("layers"))
    run.steps.push_back({step.at("name"), step.at("seconds").get<double>()});
  return run;
}

}  // namespace

MeasuredRun read_run(const std::string& text, const std::string& origin) {
  const Json document = base::parse_json(text, origin);
  MeasuredRun run;
  try {
    if (document.is_object() && document.contains("traceEvents")) run = from_trace(document.at("traceEvents"));
    if (document.is_object() && document.contains("layers")) run = from_bench(document);
  } catch (const Json::exception& error) {
    base::fail(base::Exit::bad_data, "{}: not what a run leaves: {}", origin, error.what());
  }
  if (run.steps.empty() || run.seconds <= 0 || run.ranks < 1)
    base::fail(
        base::Exit::bad_data,
        "{}: no measured steps in it; --compare takes what `bench step --trace FILE`, `train --trace FILE` or `bench "
        "step --layers --json` wrote",
        origin);
  return run;
}

}  // namespace orthant::cli
