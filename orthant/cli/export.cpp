#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/formats/safetensors.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/model/init.hpp"
#include "orthant/model/onnx/write.hpp"
#include "orthant/model/stored.hpp"
#include "orthant/train/weights.hpp"

#include <memory>
#include <optional>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using model::Graph;
using model::Parameter;

struct ExportArguments {
  NetworkArguments network;
  std::string weights, output;
  std::uint64_t seed = 1;
};

/// Parameters in the order of files: those of a file of weights, or the network's initial ones.
class Values {
 public:
  Values(const Graph& graph, const ExportArguments& arguments) : graph_(graph), seed_(arguments.seed) {
    if (arguments.weights.empty()) return;
    file_.emplace(arguments.weights);
    train::check_weights(*file_, graph);
  }

  void read(const Parameter& parameter, std::span<float> into) const {
    if (file_ && model::is_in_files(graph_, parameter)) return file_->read(parameter.name, into);
    const model::Stored* stored = model::stored_of(graph_, parameter);
    if (stored == nullptr) return model::initialise(graph_, parameter, seed_, into);
    std::vector<float> items(into.size());
    model::initialise(graph_, parameter, seed_, items);
    model::to_stored(*stored, items, into);
  }

 private:
  const Graph& graph_;
  std::uint64_t seed_;
  std::optional<data::formats::SafetensorsFile> file_;
};

void write_onnx(const Graph& graph, const Values& values, const std::string& path) {
  std::unique_ptr<data::io::OutputFile> file;
  model::onnx::write_model(
      graph, {.values = [&](const Parameter& parameter, std::span<float> into) { values.read(parameter, into); },
              .write =
                  [&](std::string_view bytes) {
                    if (file == nullptr) file = std::make_unique<data::io::OutputFile>(path);
                    file->write(std::as_bytes(std::span(bytes)));
                  }});
  file->commit();
}

void write_safetensors(const Graph& graph, const Values& values, const std::string& path) {
  std::vector<data::formats::TensorSource> tensors;
  for (const Parameter& parameter : model::parameters(graph)) {
    if (!model::is_in_files(graph, parameter)) continue;
    tensors.push_back({parameter.name, model::file_extents(graph, parameter),
                       [&values, parameter](std::span<float> into) { values.read(parameter, into); }});
  }
  data::formats::write_safetensors(path, tensors, {{"format", "pt"}, {"network", graph.name}});
}

void run(const ExportArguments& arguments) {
  const bool onnx = arguments.output.ends_with(".onnx");
  if (!onnx && !arguments.output.ends_with(".safetensors"))
    fail(Exit::usage, "--output '{}': it must end in .onnx or .safetensors", arguments.output);
  const Graph graph = load(arguments.network);
  const Values values(graph, arguments);
  onnx ? write_onnx(graph, values, arguments.output) : write_safetensors(graph, values, arguments.output);
  fmt::print("{}: {}, {} parameters, {}\n", arguments.output, graph.name, with_commas(model::parameter_count(graph)),
             onnx ? "opset 17, in evaluation form" : "under PyTorch's names");
}

}  // namespace

void add_export(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write a network as ONNX, or its weights as safetensors");
  const auto arguments = std::make_shared<ExportArguments>();
  add_model(*command, arguments->network);
  command->add_option("--input", arguments->network.input, "Shape of a sample: CxDxHxW, CxHxW or CxW");
  command->add_option("--weights", arguments->weights,
                      "Weights (safetensors); those that the network starts with if not given");
  command->add_option("--output", arguments->output, "The file: .onnx, or .safetensors")->required();
  command->add_option("--seed", arguments->seed, "Seed of weights that start at random");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace orthant::cli
