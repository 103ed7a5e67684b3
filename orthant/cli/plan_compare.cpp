#include "orthant/cli/plan_compare.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/plan_timeline.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::cli {
namespace {

using base::Json;

constexpr std::size_t most_rows = 20;
constexpr int most_ranks_followed = 64;

/// Predicted and measured of a step or a layer.
struct Pair {
  std::string name;
  double predicted = 0, measured = 0;
  [[nodiscard]] double difference() const { return predicted - measured; }
};

std::vector<double> predicted_steps(const oracle::Timeline& timeline) {
  std::vector<double> seconds(timeline.schedule.steps.size());
  for (const oracle::TimelineEvent& event : timeline.events)
    seconds[static_cast<std::size_t>(event.step)] += event.end - event.begin;
  return seconds;
}

/// The rank itself, or the one that stands for it as far as that can be told.
const oracle::Timeline& timeline_of(const std::vector<oracle::Timeline>& timelines, int rank) {
  const auto found =
      std::find_if(timelines.begin(), timelines.end(), [&](const auto& one) { return one.rank == rank; });
  return found == timelines.end() ? timelines.front() : *found;
}

void check_same(const MeasuredRun& run, const schedule::Schedule& schedule, const std::string& origin) {
  const std::size_t both = std::min(run.steps.size(), schedule.steps.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (run.steps[i].name == schedule.steps[i].name) continue;
    base::fail(
        base::Exit::bad_data,
        "{}: step {} of the run is '{}', that of the plan '{}'; name the plan of the run with --plan, --strategy "
        "or --grid, and its network with --input and --batch",
        origin, i, run.steps[i].name, schedule.steps[i].name);
  }
  if (run.steps.size() != schedule.steps.size())
    base::fail(base::Exit::bad_data, "{}: the run has {} steps, the plan {}; name the plan of the run with --plan",
               origin, run.steps.size(), schedule.steps.size());
}

void sort_worst_first(std::vector<Pair>& pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return std::abs(a.difference()) > std::abs(b.difference()); });
}

std::vector<Pair> by_layer(const Question& question, const schedule::Schedule& schedule,
                           const std::vector<Pair>& steps) {
  std::vector<Pair> layers;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int node = schedule.steps[i].node;
    const std::string name = node < 0 ? "(no layer)" : question.graph.nodes[static_cast<std::size_t>(node)].name;
    auto found = std::find_if(layers.begin(), layers.end(), [&](const Pair& one) { return one.name == name; });
    if (found == layers.end()) found = layers.insert(layers.end(), {.name = name});
    found->predicted += steps[i].predicted;
    found->measured += steps[i].measured;
  }
  return layers;
}

double accuracy(double predicted, double measured) { return 1 - std::abs(predicted - measured) / measured; }

std::string table_text(const char* title, const std::vector<Pair>& pairs, double step_seconds) {
  Table table({{title, Table::Align::left}, {"predicted"}, {"measured"}, {"difference"}, {"of the step"}});
  for (std::size_t i = 0; i < std::min(most_rows, pairs.size()); ++i) {
    const Pair& one = pairs[i];
    table.add({one.name, seconds_text(one.predicted), seconds_text(one.measured),
               (one.difference() < 0 ? "-" : "+") + seconds_text(std::abs(one.difference())),
               fmt::format("{:+.1f} %", 100 * one.difference() / step_seconds)});
  }
  const std::string more = pairs.size() > most_rows ? fmt::format("and {} more\n", pairs.size() - most_rows) : "";
  return "\n" + table.text() + more;
}

Json to_json(const std::vector<Pair>& pairs) {
  Json list = Json::array();
  for (const Pair& one : pairs)
    list.push_back({{"name", one.name}, {"predicted_seconds", one.predicted}, {"measured_seconds", one.measured}});
  return list;
}

}  // namespace

void run_compare(const PlanArguments& arguments, const Question& question, const MeasuredRun& run) {
  const plan::Plan plan = plan_for(arguments.parallel, question.graph, run.ranks);
  const oracle::Prediction predicted = followed(question, plan, most_ranks_followed);
  const oracle::Timeline& timeline = timeline_of(predicted.timelines, run.rank);
  check_same(run, timeline.schedule, arguments.compare);
  const std::vector<double> seconds = predicted_steps(timeline);
  std::vector<Pair> steps;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    steps.push_back({run.steps[i].name, seconds[i], run.steps[i].seconds});
  std::vector<Pair> layers = by_layer(question, timeline.schedule, steps);
  sort_worst_first(layers);
  sort_worst_first(steps);
  if (arguments.json) {
    fmt::print("{}\n", Json{{"rank", run.rank},
                            {"ranks", run.ranks},
                            {"predicted_seconds", predicted.seconds},
                            {"predicted_error", predicted.error},
                            {"measured_seconds", run.seconds},
                            {"accuracy", accuracy(predicted.seconds, run.seconds)},
                            {"layers", to_json(layers)},
                            {"steps", to_json(steps)}}
                           .dump(2));
    return;
  }
  fmt::print("step        predicted {} ±{:.0f} %, measured {}, accuracy {:.3f}\n", seconds_text(predicted.seconds),
             std::ceil(100 * predicted.error), seconds_text(run.seconds), accuracy(predicted.seconds, run.seconds));
  fmt::print("compared    rank {} of {}, worst first\n", run.rank, run.ranks);
  fmt::print("{}{}", table_text("layer", layers, run.seconds), table_text("step", steps, run.seconds));
}

}  // namespace orthant::cli
