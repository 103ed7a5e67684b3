#include "orthant/cli/plan_sweep.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/log_chart.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace orthant::cli {
namespace {

using base::Json;

constexpr int most_ranks = 100'000;

/// One strategy on so many ranks.
struct SweepPoint {
  bool is_weak = false;
  int ranks = 1;
  std::int64_t mini_batch = 1;
  planner::Candidate candidate;
  double ideal_seconds = 0;  ///< of a rank alone, divided by the ranks; of weak scaling as it is
};

/// The strategies of one number of ranks; the searched plan only if it was asked for.
std::vector<planner::Candidate> candidates_of(const PlanArguments& arguments, const Question& question) {
  if (names_a_plan(arguments)) {
    try {
      return {price_given(arguments, question).best};
    } catch (const base::Error& error) {
      return {{.name = arguments.parallel.strategy, .refused = error.what()}};
    }
  }
  planner::PlanningOptions options = question.options;
  options.search = arguments.parallel.strategy == "auto";
  planner::Planned planned = planner::plan_best(question.graph, question.profile, options);
  if (options.search && planned.best.refused.empty()) {
    planned.strategies.push_back(planned.best);
    planned.strategies.back().name = "auto";
  }
  return std::move(planned.strategies);
}

double serial_seconds(const Question& question) {
  return oracle::predict(question.graph, plan::serial_plan(question.graph), question.profile, question.options.step)
      .seconds;
}

std::vector<SweepPoint> sweep(const PlanArguments& arguments, const Question& asked, const std::vector<int>& ranks) {
  std::vector<SweepPoint> points;
  FileProgress progress("planning", "plans");
  const double alone = serial_seconds(asked) / static_cast<double>(asked.mini_batch());
  std::int64_t done = 0;
  for (const bool is_weak : {false, true}) {
    for (const int count : ranks) {
      Question question = asked;
      question.options.ranks = count;
      const std::int64_t samples = is_weak ? asked.mini_batch() * count / ranks.front() : asked.mini_batch();
      if (is_weak) question.graph = planner::with_mini_batch(asked.graph, samples);
      for (planner::Candidate& one : candidates_of(arguments, question))
        points.push_back({.is_weak = is_weak,
                          .ranks = count,
                          .mini_batch = samples,
                          .candidate = std::move(one),
                          .ideal_seconds = alone * static_cast<double>(samples) / count});
      progress.update(++done, static_cast<std::int64_t>(2 * ranks.size()));
    }
  }
  return points;
}

std::vector<std::string> names_of(const std::vector<SweepPoint>& points) {
  std::vector<std::string> names;
  for (const SweepPoint& point : points)
    if (std::find(names.begin(), names.end(), point.candidate.name) == names.end())
      names.push_back(point.candidate.name);
  return names;
}

std::string cell(const SweepPoint& point) {
  const planner::Candidate& one = point.candidate;
  if (!one.refused.empty()) return "-";
  const double efficiency = point.ideal_seconds / one.prediction.seconds;
  return fmt::format("{}{} {:3.0f} %", one.fits ? "" : "*", seconds_text(one.prediction.seconds), 100 * efficiency);
}

std::string table_text(const std::vector<SweepPoint>& points, bool is_weak) {
  const std::vector<std::string> names = names_of(points);
  std::vector<Table::Column> columns{{"ranks"}, {"mini-batch"}};
  for (const std::string& name : names) columns.push_back({name});
  Table table(columns);
  std::vector<std::string> row;
  for (const SweepPoint& point : points) {
    if (point.is_weak != is_weak) continue;
    const std::string ranks = with_commas(point.ranks);
    if (row.empty() || row.front() != ranks) {
      if (!row.empty()) table.add(row);
      row = {ranks, with_commas(point.mini_batch)};
    }
    row.push_back(cell(point));
  }
  if (!row.empty()) table.add(row);
  return table.text();
}

/// Why each strategy ends where it does: the reason at the first number of ranks at which it cannot run.
std::string ends_text(const std::vector<SweepPoint>& points) {
  std::string text;
  for (const std::string& name : names_of(points)) {
    const auto first = std::find_if(points.begin(), points.end(), [&](const SweepPoint& point) {
      return !point.is_weak && point.candidate.name == name && !point.candidate.refused.empty();
    });
    if (first != points.end())
      text += fmt::format("{} cannot run on {} ranks: {}\n", name, with_commas(first->ranks), first->candidate.refused);
  }
  return text;
}

Json to_json(const SweepPoint& point) {
  const planner::Candidate& one = point.candidate;
  Json json{{"scaling", point.is_weak ? "weak" : "strong"},
            {"ranks", point.ranks},
            {"mini_batch", point.mini_batch},
            {"strategy", one.name},
            {"fits", one.fits}};
  if (!one.refused.empty()) {
    json["refused"] = one.refused;
    return json;
  }
  json["seconds"] = one.prediction.seconds;
  json["error"] = one.prediction.error;
  json["efficiency"] = point.ideal_seconds / one.prediction.seconds;
  json["exposed_seconds"] = one.prediction.exposed_seconds;
  json["memory_bytes"] = one.prediction.memory.total();
  json["limited_by"] = oracle::bottleneck(one.prediction);
  return json;
}

std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return '"' + text + '"';
}

std::string csv_text(const std::vector<SweepPoint>& points) {
  std::string text =
      "scaling,ranks,mini_batch,strategy,fits,seconds,error,samples_per_second,efficiency,exposed_seconds,memory_bytes,"
      "remark\n";
  for (const SweepPoint& point : points) {
    const planner::Candidate& one = point.candidate;
    text += fmt::format("{},{},{},{},", point.is_weak ? "weak" : "strong", point.ranks, point.mini_batch, one.name);
    if (!one.refused.empty()) {
      text += fmt::format("no,,,,,,,{}\n", quoted(one.refused));
      continue;
    }
    const oracle::Prediction& prediction = one.prediction;
    text += fmt::format("{},{:.6g},{:.3g},{:.6g},{:.4g},{:.6g},{},{}\n", one.fits ? "yes" : "no", prediction.seconds,
                        prediction.error, static_cast<double>(point.mini_batch) / prediction.seconds,
                        point.ideal_seconds / prediction.seconds, prediction.exposed_seconds, prediction.memory.total(),
                        quoted(oracle::bottleneck(prediction)));
  }
  return text;
}

LogChart chart_of(const std::vector<SweepPoint>& points, bool is_weak) {
  LogChart chart{
      .title = is_weak ? "Weak scaling: the mini-batch grows with the ranks" : "Strong scaling: one mini-batch",
      .x_title = "ranks",
      .y_title = is_weak ? "samples per second" : "seconds per step",
      .series = {}};
  ChartSeries ideal{.name = "ideal", .points = {}, .is_ideal = true};
  for (const std::string& name : names_of(points)) {
    ChartSeries series{.name = name, .points = {}};
    for (const SweepPoint& point : points) {
      if (point.is_weak != is_weak || point.candidate.name != name) continue;
      const auto value = [&](double seconds) {
        return is_weak ? static_cast<double>(point.mini_batch) / seconds : seconds;
      };
      const auto ranks = static_cast<double>(point.ranks);
      if (name == points.front().candidate.name) ideal.points.push_back({ranks, value(point.ideal_seconds)});
      if (point.candidate.refused.empty())
        series.points.push_back({ranks, value(point.candidate.prediction.seconds), !point.candidate.fits});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  chart.series.insert(chart.series.begin(), std::move(ideal));
  return chart;
}

std::string svg_text(const Question& question, const std::vector<SweepPoint>& points) {
  const std::string title = fmt::format("{} on {}, predicted; mini-batch of {} for strong scaling", question.graph.name,
                                        question.profile.name, with_commas(question.mini_batch()));
  double error = 0;
  bool some_do_not_fit = false;
  for (const SweepPoint& point : points) {
    error = std::max(error, point.candidate.prediction.error);
    some_do_not_fit = some_do_not_fit || (point.candidate.refused.empty() && !point.candidate.fits);
  }
  return to_svg(
      title, {chart_of(points, false), chart_of(points, true)},
      fmt::format("Predicted by orthant plan; standard error of times up to {:.0f} %.{}", std::ceil(100 * error),
                  some_do_not_fit ? " Hollow marks need more memory than a rank has." : ""));
}

void print_text(const Question& question, const std::vector<SweepPoint>& points) {
  fmt::print("{} on {}: time of a step and efficiency against one rank\n\n", question.graph.name,
             question.profile.name);
  fmt::print("strong scaling, the same mini-batch\n{}\n", table_text(points, false));
  fmt::print("weak scaling, a mini-batch that grows with the ranks\n{}", table_text(points, true));
  const bool some_do_not_fit = std::any_of(points.begin(), points.end(), [](const SweepPoint& point) {
    return point.candidate.refused.empty() && !point.candidate.fits;
  });
  if (some_do_not_fit) fmt::print("* needs more memory than a rank has\n");
  fmt::print("{}", ends_text(points));
}

}  // namespace

std::vector<int> swept_ranks(const std::string& text) {
  int first = 0, last = 0;
  const std::string prefix = "ranks=";
  const std::size_t dots = text.find("..");
  const auto number = [](const std::string& digits, int& into) {
    const char* end = digits.data() + digits.size();
    return !digits.empty() && std::from_chars(digits.data(), end, into).ptr == end;
  };
  const bool is_range = text.rfind(prefix, 0) == 0 && dots != std::string::npos &&
                        number(text.substr(prefix.size(), dots - prefix.size()), first) &&
                        number(text.substr(dots + 2), last);
  if (!is_range || first < 1 || last < first || last > most_ranks)
    base::fail(base::Exit::usage, "--sweep '{}': it takes a range such as ranks=1..2048, up to {}", text, most_ranks);
  std::vector<int> ranks;
  for (std::int64_t count = first; count <= last; count *= 2) ranks.push_back(static_cast<int>(count));
  return ranks;
}

void run_sweep(const PlanArguments& arguments, const Question& question) {
  const std::vector<SweepPoint> points = sweep(arguments, question, swept_ranks(arguments.sweep));
  if (!arguments.csv.empty()) data::io::write_text(arguments.csv, csv_text(points));
  if (!arguments.svg.empty()) data::io::write_text(arguments.svg, svg_text(question, points));
  if (!arguments.json) {
    print_text(question, points);
    return;
  }
  Json list = Json::array();
  for (const SweepPoint& point : points) list.push_back(to_json(point));
  fmt::print("{}\n",
             Json{{"network", question.graph.name}, {"machine", question.profile.name}, {"points", list}}.dump(2));
}

}  // namespace orthant::cli
