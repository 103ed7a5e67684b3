#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/train/loop.hpp"

#include <filesystem>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;

struct TrainArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string trace;
  bool json = false;
};

void print_start(const train::Start& start) {
  fmt::print("network     {}, {} parameters\n", start.network, with_commas(start.parameters));
  fmt::print("data        {} samples, {} steps\n", with_commas(start.samples), with_commas(start.steps));
  fmt::print("memory      {} in one arena, {} thread{}\n", bytes_text(start.arena_bytes), start.threads,
             start.threads == 1 ? "" : "s");
  fmt::print("directory   {}\n", start.directory);
  std::fflush(stdout);
}

void print_summary(const train::Summary& summary) {
  fmt::print("{}\n", summary.stopped ? "stopped by a signal" : "done");
  if (summary.averaged_steps > 0) {
    fmt::print("loss        {:.5g} -> {:.5g}{}\n", summary.first_loss, summary.last_loss,
               summary.averaged_steps > 1
                   ? fmt::format(" (means of the first and last {} steps)", summary.averaged_steps)
                   : "");
  }
  fmt::print("time        {} for {} steps, {:.3g} samples/s\n", seconds_text(summary.seconds),
             with_commas(summary.steps), summary.samples_per_second);
  fmt::print("weights     {}\n", summary.weights);
}

void print_json(const train::Summary& summary) {
  const Json json{{"steps", summary.steps},
                  {"epochs", summary.epochs},
                  {"first_loss", summary.first_loss},
                  {"last_loss", summary.last_loss},
                  {"averaged_steps", summary.averaged_steps},
                  {"seconds", summary.seconds},
                  {"samples_per_second", summary.samples_per_second},
                  {"arena_bytes", summary.arena_bytes},
                  {"directory", summary.directory},
                  {"weights", summary.weights},
                  {"stopped", summary.stopped}};
  fmt::print("{}\n", json.dump(2));
}

void run_train(const TrainArguments& arguments) {
  const train::RunFile run = train::load_run(arguments.run, arguments.overrides);
  train::TrainOptions options{
      .name = std::filesystem::path(arguments.run).stem().string(), .trace_path = arguments.trace, .started = {}};
  if (!arguments.json) options.started = print_start;
  const train::Summary summary = train::train(run, options);
  arguments.json ? print_json(summary) : print_summary(summary);
  if (summary.stopped) {
    base::fail(base::Exit::stopped, "stopped by a signal after step {}; the weights are in '{}'", summary.steps,
               summary.weights);
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network as a run file says");
  const auto arguments = std::make_shared<TrainArguments>();
  command->add_option("run", arguments->run, "The run file (.yaml); docs/run-file.md has its keys")->required();
  command->add_option("overrides", arguments->overrides, "Keys of the run file with other values: key=value");
  command->add_option("--trace", arguments->trace, "Write a Chrome trace of the steps to this file");
  command->add_flag("--json", arguments->json, "Print the summary as JSON");
  command->callback([arguments] { run_train(*arguments); });
}

}  // namespace orthant::cli
