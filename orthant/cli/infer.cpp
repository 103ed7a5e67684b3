#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/evaluation_run.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/train/new_samples.hpp"
#include "orthant/train/open_data.hpp"
#include "orthant/train/prediction_files.hpp"
#include "orthant/train/sample_values.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;

struct InferArguments : EvaluationArguments {
  std::vector<std::string> inputs;
  std::string directory, format;
  bool labels = false, overwrite = false;
};

/// The format, or the default for the network, refused where it does not fit.
std::string format_for(const InferArguments& arguments, const model::Graph& graph) {
  const bool values = train::has_sample_values(graph);
  const bool classes = model::takes_labels(graph.loss);
  if (arguments.labels && !classes) fail(Exit::usage, "--labels: {} predicts values, not classes", graph.name);
  if (arguments.labels && graph.nodes.back().shape.c > 256)
    fail(Exit::usage, "--labels: {} has {} classes, more than a byte can hold", graph.name, graph.nodes.back().shape.c);
  if (arguments.format.empty()) return values ? "csv" : "hdf5";
  const bool fits = values == (arguments.format == "csv" || arguments.format == "json");
  if (fits) return arguments.format;
  fail(Exit::usage, "--format {}: {} predicts {}; use {}", arguments.format, graph.name,
       values ? "some numbers per sample" : "volumes", values ? "csv or json" : "hdf5 or nifti");
}

/// The files that will be written. Throws Error if one of them exists.
std::vector<std::string> outputs_of(const InferArguments& arguments, const std::string& format,
                                    const data::sets::Dataset& dataset) {
  std::vector<std::string> paths;
  if (format == "csv" || format == "json") {
    paths.push_back((std::filesystem::path(arguments.directory) / ("predictions." + format)).string());
  } else {
    paths = train::prediction_paths(dataset, {.directory = arguments.directory, .nifti = format == "nifti"});
  }
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!arguments.overwrite && std::filesystem::exists(path, ignored))
      fail(Exit::io, "'{}' exists already; choose another --output, or use --overwrite", path);
  }
  return paths;
}

std::size_t class_of(std::span<const double> scores) {
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::string csv_text(const train::SampleValues& values, const data::sets::Dataset& dataset, bool labels) {
  std::string text = "sample";
  if (labels) text += ",class";
  for (std::size_t c = 0; !labels && c < values.predicted(0).size(); ++c) text += fmt::format(",value_{}", c);
  for (std::int64_t sample = 0; sample < values.samples(); ++sample) {
    text += fmt::format("\n\"{}\"", dataset.name(sample));
    if (labels) text += fmt::format(",{}", class_of(values.predicted(sample)));
    for (std::size_t c = 0; !labels && c < values.predicted(sample).size(); ++c)
      text += fmt::format(",{}", static_cast<float>(values.predicted(sample)[c]));
  }
  return text + "\n";
}

std::string json_text(const train::SampleValues& values, const data::sets::Dataset& dataset, bool labels) {
  Json list = Json::array();
  for (std::int64_t sample = 0; sample < values.samples(); ++sample) {
    const std::span<const double> row = values.predicted(sample);
    Json entry{{"sample", dataset.name(sample)}};
    if (labels) entry["class"] = class_of(row);
    entry["values"] = std::vector<double>(row.begin(), row.end());
    list.push_back(std::move(entry));
  }
  return list.dump(2) + "\n";
}

/// Throws Error if one of this rank's predictions is not finite: it would spread into whatever uses them.
void check_finite(engine::Engine& engine) {
  for (const schedule::Port& port : engine.schedule().predictions) {
    if (port.buffer < 0) continue;
    const auto items = engine.floats(port.buffer)
                           .subspan(static_cast<std::size_t>(port.layout.offset),
                                    static_cast<std::size_t>(tensor::volume(port.layout.extents)));
    if (!data::arrays::all_finite(items.data(), static_cast<std::int64_t>(items.size())))
      fail(Exit::non_finite, "a prediction is not finite; the weights or the inputs are too large");
  }
}

/// Collective. Runs all samples and writes the predictions.
void infer(const InferArguments& arguments, EvaluationRun& at, const data::sets::Dataset& dataset,
           const std::string& format, const std::vector<std::string>& paths) {
  engine::Engine& engine = at.evaluator->engine();
  std::optional<train::SampleValues> values;
  std::optional<train::PredictionFiles> files;
  if (train::has_sample_values(at.graph)) {
    values.emplace(at.graph, dataset.samples());
  } else {
    files.emplace(at.evaluator->session(), paths,
                  train::PredictionOptions{
                      .directory = arguments.directory, .nifti = format == "nifti", .labels = arguments.labels});
  }
  std::optional<FileProgress> progress;
  if (at.comm.rank() == 0) progress.emplace("predicted", "samples");
  at.evaluator->run(dataset, [&](const train::EvaluatedBatch& batch) {
    comm::agree(at.comm, [&] { check_finite(engine); });
    if (values) values->add(engine, batch);
    if (files) files->write(batch);
    if (progress) progress->update(batch.first + batch.samples, dataset.samples());
  });
  if (!values) return;
  values->share(at.comm);
  comm::on_root(at.comm, [&] {
    const auto text = format == "csv" ? csv_text : json_text;
    data::io::write_text(paths.front(), text(*values, dataset, arguments.labels));
  });
}

void check_infer(const InferArguments& arguments, int ranks) {
  check_evaluation(arguments, ranks);
  const train::RunFile run = train::load_run(arguments.run, arguments.overrides);
  const model::Graph graph = model::load_network(run.model, run.network);
  const train::NewSamples samples(arguments.inputs);
  const auto dataset = samples.open(run.data, train::sample_shape(graph), samples.survey());
  outputs_of(arguments, format_for(arguments, graph), *dataset);
}

void run_infer(const InferArguments& arguments, comm::Comm& comm) {
  EvaluationRun at(arguments, comm);
  const std::string format = comm::agree(comm, [&] { return format_for(arguments, at.graph); });
  const train::NewSamples samples = comm::agree(comm, [&] { return train::NewSamples(arguments.inputs); });
  const std::string survey = comm::on_root(comm, [&] { return samples.survey(); });
  const auto dataset =
      comm::agree(comm, [&] { return samples.open(at.run.data, train::sample_shape(at.graph), survey); });
  const auto paths = comm::agree(comm, [&] { return outputs_of(arguments, format, *dataset); });
  at.load_weights(arguments);
  comm::on_root(comm, [&] { data::io::make_directories(arguments.directory); });
  const bool prints = comm.rank() == 0;
  if (prints && !arguments.json) at.print();
  infer(arguments, at, *dataset, format, paths);
  if (!prints) return;
  if (arguments.json) {
    const Json json{{"network", at.graph.name}, {"samples", dataset->samples()}, {"format", format}, {"files", paths}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("done        {} sample{} in '{}'\n", with_commas(dataset->samples()), dataset->samples() == 1 ? "" : "s",
               paths.size() == 1 ? paths.front() : arguments.directory);
  }
}

}  // namespace

void add_infer(CLI::App& app) {
  CLI::App* command = app.add_subcommand("infer", "What trained weights say about new samples");
  const auto arguments = std::make_shared<InferArguments>();
  add_evaluation(*command, *arguments);
  command->add_option("--input", arguments->inputs, "HDF5 or npy files, patterns or directories")->required();
  command->add_option("--output", arguments->directory, "Directory for the predictions")->required();
  command->add_option("--format", arguments->format, "Volumes: hdf5 or nifti; numbers per sample: csv or json")
      ->check(CLI::IsMember({"hdf5", "nifti", "csv", "json"}));
  command->add_flag("--labels", arguments->labels, "The most likely class instead of a number for each");
  command->add_flag("--overwrite", arguments->overwrite, "Replace predictions that are there");
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { check_infer(*arguments, ranks); },
        [&](comm::Comm& comm) { run_infer(*arguments, comm); });
  });
}

}  // namespace orthant::cli
