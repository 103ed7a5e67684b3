#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/auto_plan.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/train/loop.hpp"
#include "orthant/train/mini_batches.hpp"
#include "orthant/train/run_data.hpp"
#include "orthant/train/run_directory.hpp"
#include "orthant/train/scores_text.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

namespace orthant::cli {
namespace {

using base::Json;

struct TrainArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string trace;
  ParallelArguments parallel;
  bool json = false;
  std::string resume, stop_at;
  bool resumes = false;  ///< --resume was given, with or without a word
};

train::ResumeOptions resume_options(const TrainArguments& arguments) {
  using Kind = train::ResumeOptions::Kind;
  if (!arguments.resumes) return {};
  if (arguments.resume == "exact") return {.kind = Kind::exact};
  if (arguments.resume == "auto") return {.kind = Kind::automatic};
  return {.kind = Kind::newest, .directory = arguments.resume};
}

/// When the run must have ended: what the user says or, without, Slurm.
std::optional<train::WallTime> stop_time(const TrainArguments& arguments) {
  if (arguments.stop_at.empty()) return train::job_end_from_environment();
  return train::parse_stop_time(arguments.stop_at, std::chrono::system_clock::now());
}

/// Whether the run may begin in its directory. One that may go on looks there later.
void check_start(train::RunFile& run, const train::ResumeOptions& resume) {
  using Kind = train::ResumeOptions::Kind;
  if (resume.kind == Kind::newest || resume.kind == Kind::exact) return;
  if (resume.kind == Kind::automatic && !run.output.empty()) {
    if (!train::checkpoint::Directory(run.output).steps().empty()) return;
    run.overwrite = run.overwrite || train::may_start_again(run.output);
  }
  train::check_run_directory(run.output, run.overwrite);
}

void print_start(const train::RunDescription& start) {
  fmt::print("network     {}, {} parameters\n", start.network, with_commas(start.parameters));
  for (const std::string& remark : start.network_remarks) fmt::print("network     {}\n", remark);
  fmt::print("data        {} samples, {} steps\n", with_commas(start.samples), with_commas(start.steps));
  if (start.validation_samples > 0) {
    fmt::print("validation  {} samples, {} on rank 0\n", with_commas(start.validation_samples),
               bytes_text(start.validation_bytes));
  }
  if (start.store.set_bytes > 0) {
    fmt::print("store       {} of {} kept in memory, at most {} on a rank{}\n", bytes_text(start.store.bytes),
               bytes_text(start.store.set_bytes), bytes_text(start.store.largest_bytes),
               start.store.samples < start.samples ? "; the rest is read in every epoch" : "");
  }
  const std::string threads = fmt::format("{} thread{}", start.threads, start.threads == 1 ? "" : "s");
  if (start.ranks == 1) {
    fmt::print("memory      {} in one arena, {}\n", bytes_text(start.arena_bytes), threads);
  } else {
    fmt::print("ranks       {} of {} each\n", start.ranks, threads);
    for (const std::string& remark : start.remarks) fmt::print("plan        {}\n", remark);
    fmt::print("memory      {} on rank 0\n", bytes_text(start.arena_bytes));
  }
  fmt::print("directory   {}\n", start.directory);
  for (const std::string& note : start.notes) fmt::print("checkpoint  {}\n", note);
  std::fflush(stdout);
}

const char* stop_text(train::Summary::Stop stop) {
  using Stop = train::Summary::Stop;
  if (stop == Stop::none) return "done";
  return stop == Stop::by_signal ? "stopped by a signal" : "stopped in time";
}

void print_summary(const train::Summary& summary) {
  fmt::print("{}\n", stop_text(summary.stopped));
  if (summary.averaged_steps > 0) {
    fmt::print("loss        {:.5g} -> {:.5g}{}\n", summary.first_loss, summary.last_loss,
               summary.averaged_steps > 1
                   ? fmt::format(" (means of the first and last {} steps)", summary.averaged_steps)
                   : "");
  }
  fmt::print("time        {} for {} steps, {:.3g} samples/s\n", seconds_text(summary.seconds),
             with_commas(summary.steps), summary.samples_per_second);
  if (summary.best) {
    fmt::print("validation  {}\n", train::to_text(*summary.validation));
    fmt::print("best        {} (step {}) in {}\n", train::to_text(*summary.best), with_commas(summary.best_step),
               summary.best_weights);
  }
  if (summary.checkpoint_step >= 0) {
    fmt::print("checkpoint  of step {} in {}/checkpoints\n", with_commas(summary.checkpoint_step), summary.directory);
  }
  fmt::print("weights     {}\n", summary.weights);
}

Json to_json(const std::vector<train::EpochIo>& epochs) {
  Json list = Json::array();
  for (const train::EpochIo& io : epochs) {
    list.push_back(
        {{"file_bytes", io.file_bytes}, {"store_bytes_sent", io.store_bytes_sent}, {"wait_seconds", io.wait_seconds}});
  }
  return list;
}

void print_json(const train::Summary& summary) {
  Json json{{"steps", summary.steps},
            {"epochs", summary.epochs},
            {"first_loss", summary.first_loss},
            {"last_loss", summary.last_loss},
            {"averaged_steps", summary.averaged_steps},
            {"seconds", summary.seconds},
            {"samples_per_second", summary.samples_per_second},
            {"arena_bytes", summary.arena_bytes},
            {"store_bytes", summary.store_bytes},
            {"epoch_io", to_json(summary.epoch_io)},
            {"directory", summary.directory},
            {"weights", summary.weights},
            {"stopped", summary.stopped != train::Summary::Stop::none},
            {"resumed_step", summary.resumed_step},
            {"checkpoints", summary.checkpoints},
            {"checkpoint_step", summary.checkpoint_step},
            {"checkpoint_seconds", summary.checkpoint_seconds},
            {"checkpoint_wait_seconds", summary.checkpoint_wait_seconds},
            {"skipped_steps", summary.skipped_steps}};
  if (summary.best) {
    json["validation"] = train::to_json(*summary.validation);
    json["best"] = train::to_json(*summary.best);
    json["best_step"] = summary.best_step;
    json["best_weights"] = summary.best_weights;
  }
  fmt::print("{}\n", json.dump(2));
}

/// What can be refused before ranks are started. Opens the data but reads no sample.
void check_train(const TrainArguments& arguments, int ranks) {
  const train::RunFile run = train::load_run(arguments.run, arguments.overrides);
  static_cast<void>(stop_time(arguments));
  const model::Graph graph = model::load_network(run.model, run.network);
  check_plan(arguments.parallel, graph, ranks);
  const train::RunData samples(run, graph, train::survey_run(run));
  const train::MiniBatches batches(samples.training(), graph, {.shuffle = run.data.shuffle, .seed = run.seed});
}

void run_train(const TrainArguments& arguments, comm::Comm& comm) {
  train::RunFile run = comm::agree(comm, [&] { return train::load_run(arguments.run, arguments.overrides); });
  const train::ResumeOptions resume = resume_options(arguments);
  comm::on_root(comm, [&] { check_start(run, resume); });
  const auto stop_at = comm::agree(comm, [&] { return stop_time(arguments); });
  ParallelArguments parallel = arguments.parallel;
  if (parallel.threads == 0) parallel.threads = run.threads;
  if (parallel.errors.empty()) parallel.errors = run.error;
  const auto network = comm::agree(comm, [&] { return model::load_network(run.model, run.network); });
  const plan::Plan plan = common_plan(parallel, network, {.optimizer = run.optimizer}, comm);
  train::TrainOptions options{.name = std::filesystem::path(arguments.run).stem().string(),
                              .trace_path = arguments.trace,
                              .threads = threads_per_rank(parallel),
                              .plan = [&](const model::Graph&) { return plan; },
                              .kernels = kernel_options(parallel, comm),
                              .started = {},
                              .resume = resume,
                              .stop_at = stop_at};
  if (!arguments.json) options.started = print_start;
  const train::Summary summary = train::train(run, comm, options);
  if (comm.rank() == 0) arguments.json ? print_json(summary) : print_summary(summary);
  if (summary.stopped != train::Summary::Stop::none) {
    const bool has_checkpoint = summary.checkpoint_step == summary.steps;
    throw comm::CollectiveError(
        base::Exit::stopped,
        fmt::format("{} after step {}; the weights are in '{}'{}", stop_text(summary.stopped), summary.steps,
                    summary.weights,
                    has_checkpoint ? "; go on with --resume" : ", but there is no checkpoint of them"));
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network as a run file says");
  const auto arguments = std::make_shared<TrainArguments>();
  command->add_option("run", arguments->run, "The run file (.yaml); docs/run-file.md has its keys")->required();
  command->add_option("overrides", arguments->overrides, "Keys of the run file with other values: key=value");
  CLI::Option* resume = command->add_option(
      "--resume", arguments->resume,
      "Go on where the run in this directory stopped; or `exact`: bit for bit; or `auto`: if there is a checkpoint");
  resume->expected(0, 1)->type_name("[DIR|exact|auto]");
  command->add_option("--stop-at", arguments->stop_at, "Stop with a checkpoint before this time: 2026-11-30T08:00");
  command->add_option("--trace", arguments->trace, "Write a Chrome trace of the steps to this file");
  command->add_flag("--json", arguments->json, "Print the summary as JSON");
  add_parallel(*command, arguments->parallel);
  command->callback([arguments, resume] {
    arguments->resumes = resume->count() > 0;
    // An override that follows --resume is not its directory.
    if (arguments->resume.find('=') != std::string::npos && !std::filesystem::is_directory(arguments->resume))
      arguments->overrides.push_back(std::exchange(arguments->resume, ""));
    run_on_ranks(
        arguments->parallel, [&](int ranks) { check_train(*arguments, ranks); },
        [&](comm::Comm& comm) { run_train(*arguments, comm); });
  });
}

}  // namespace orthant::cli
