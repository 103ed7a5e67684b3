#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/evaluation_run.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/train/run_data.hpp"
#include "orthant/train/sample_values.hpp"
#include "orthant/train/scores_text.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;

struct EvaluateArguments : EvaluationArguments {
  bool validation = false;
  std::int64_t show = 10;
  std::vector<std::string> names;
};

/// The results of `evaluate`.
struct Outcome {
  train::Scores scores;
  std::optional<train::SampleValues> values;
};

const data::sets::Dataset& chosen(const train::RunData& samples, bool validation) {
  if (!validation) return samples.all();
  if (samples.validation() == nullptr)
    fail(Exit::usage, "--validation: the run has no validation part; give it one with validation.fraction=0.2");
  return *samples.validation();
}

/// Collective.
Outcome evaluate(EvaluationRun& at, const data::sets::Dataset& dataset, std::int64_t show) {
  train::ScoreSums sums(at.graph);
  Outcome outcome;
  if (train::has_sample_values(at.graph)) outcome.values.emplace(at.graph, std::min(show, dataset.samples()));
  std::optional<FileProgress> progress;
  if (at.comm.rank() == 0) progress.emplace("evaluated", "samples");
  at.evaluator->run(dataset, [&](const train::EvaluatedBatch& batch) {
    sums.add(at.evaluator->engine(), batch);
    if (outcome.values) outcome.values->add(at.evaluator->engine(), batch);
    if (progress) progress->update(batch.first + batch.samples, dataset.samples());
  });
  outcome.scores = sums.total(at.comm);
  if (outcome.values) outcome.values->share(at.comm);
  if (!std::isfinite(outcome.scores.loss)) {
    throw comm::CollectiveError(
        Exit::non_finite, fmt::format("the loss is {}; the weights or the inputs are too large", outcome.scores.loss));
  }
  return outcome;
}

std::string name_of(const EvaluateArguments& arguments, std::size_t channel) {
  return channel < arguments.names.size() ? arguments.names[channel] : fmt::format("value {}", channel);
}

std::string share_text(const std::optional<double>& share) { return share ? fmt::format("{:.3f}", *share) : "-"; }

/// The error of predicting the mean of the targets for every sample, for comparison.
void print_mean(const train::Scores& scores) {
  double mean_error = 0;
  for (const train::ValueScore& channel : scores.channels)
    mean_error += channel.target_variance / static_cast<double>(scores.channels.size());
  if (mean_error <= 0) return;
  const double error = scores.mean_squared_error;
  fmt::print("mean        always predicting the mean has MSE {:.5g}: the network is {}\n", mean_error,
             error < mean_error ? fmt::format("{:.1f} times better", mean_error / error) : "no better");
}

void print_channels(const EvaluateArguments& arguments, const train::Scores& scores) {
  print_mean(scores);
  Table table({{"", Table::Align::left}, {"RMSE"}, {"MAE"}, {"RMSE of the mean"}, {"explained"}});
  for (std::size_t c = 0; c < scores.channels.size(); ++c) {
    const train::ValueScore& channel = scores.channels[c];
    table.add({name_of(arguments, c), fmt::format("{:.4g}", std::sqrt(channel.mean_squared_error)),
               fmt::format("{:.4g}", channel.mean_absolute_error),
               fmt::format("{:.4g}", std::sqrt(channel.target_variance)), share_text(channel.explained())});
  }
  fmt::print("\n{}", table.text());
}

void print_classes(const EvaluateArguments& arguments, const train::Scores& scores) {
  Table table({{"class", Table::Align::left}, {"Dice"}});
  for (std::size_t c = 0; c < scores.dice.size(); ++c) {
    const std::string name = c < arguments.names.size() ? arguments.names[c] : std::to_string(c);
    table.add({name, share_text(scores.dice[c])});
  }
  fmt::print("\n{}", table.text());
}

/// Predicted against true, a row per sample.
void print_values(const EvaluateArguments& arguments, const train::SampleValues& values,
                  const data::sets::Dataset& dataset) {
  const std::size_t channels = values.predicted(0).size();
  std::vector<Table::Column> columns{{"sample", Table::Align::left}};
  for (std::size_t c = 0; c < channels; ++c) {
    columns.push_back({name_of(arguments, c)});
    columns.push_back({"true"});
  }
  Table table(columns);
  for (std::int64_t sample = 0; sample < values.samples(); ++sample) {
    std::vector<std::string> row{std::filesystem::path(dataset.name(sample)).filename().string()};
    for (std::size_t c = 0; c < channels; ++c) {
      row.push_back(fmt::format("{:.3f}", values.predicted(sample)[c]));
      row.push_back(fmt::format("{:.3f}", values.actual(sample)[c]));
    }
    table.add(std::move(row));
  }
  fmt::print("\n{}", table.text());
}

void print_text(const EvaluateArguments& arguments, const Outcome& outcome, const data::sets::Dataset& dataset) {
  const train::Scores& scores = outcome.scores;
  fmt::print("scores      {}\n", train::to_text(scores));
  scores.labels ? print_classes(arguments, scores) : print_channels(arguments, scores);
  if (outcome.values && outcome.values->samples() > 0 && !scores.labels)
    print_values(arguments, *outcome.values, dataset);
}

std::vector<double> list_of(std::span<const double> numbers) { return {numbers.begin(), numbers.end()}; }

void print_json(const EvaluateArguments& arguments, const EvaluationRun& at, const Outcome& outcome,
                const data::sets::Dataset& dataset) {
  Json json{{"network", at.graph.name}, {"weights", arguments.weights}};
  json.update(train::to_json(outcome.scores));
  json["arena_bytes"] = at.evaluator->engine().placement().arena_bytes;
  json["predictions"] = Json::array();
  for (std::int64_t sample = 0; outcome.values && sample < outcome.values->samples(); ++sample) {
    json["predictions"].push_back({{"sample", dataset.name(sample)},
                                   {"predicted", list_of(outcome.values->predicted(sample))},
                                   {"true", list_of(outcome.values->actual(sample))}});
  }
  fmt::print("{}\n", json.dump(2));
}

void check_evaluate(const EvaluateArguments& arguments, int ranks) {
  check_evaluation(arguments, ranks);
  const train::RunFile run = train::load_run(arguments.run, arguments.overrides);
  const train::RunData samples(run, model::load_network(run.model, run.network), train::survey_run(run));
  chosen(samples, arguments.validation);
}

void run_evaluate(const EvaluateArguments& arguments, comm::Comm& comm) {
  EvaluationRun at(arguments, comm);
  const train::RunSurvey survey = train::survey_run(at.run, comm);
  const auto samples = comm::agree(comm, [&] {
    auto opened = std::make_unique<train::RunData>(at.run, at.graph, survey);
    chosen(*opened, arguments.validation);
    return opened;
  });
  const data::sets::Dataset& dataset = chosen(*samples, arguments.validation);
  at.load_weights(arguments);
  const bool prints = comm.rank() == 0;
  if (prints && !arguments.json) {
    at.print();
    fmt::print("data        {} samples{}\n", with_commas(dataset.samples()),
               arguments.validation ? ", the validation part" : "");
    std::fflush(stdout);
  }
  const Outcome outcome = evaluate(at, dataset, arguments.show);
  if (!prints) return;
  arguments.json ? print_json(arguments, at, outcome, dataset) : print_text(arguments, outcome, dataset);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "How well trained weights do on the data of a run");
  const auto arguments = std::make_shared<EvaluateArguments>();
  add_evaluation(*command, *arguments);
  command->add_flag("--validation", arguments->validation, "Only the samples the run does not train on");
  command->add_option("--show", arguments->show, "So many samples with predicted and true values")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--names", arguments->names, "Names of the values or classes: omega_m,sigma_8")->delimiter(',');
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { check_evaluate(*arguments, ranks); },
        [&](comm::Comm& comm) { run_evaluate(*arguments, comm); });
  });
}

}  // namespace orthant::cli
