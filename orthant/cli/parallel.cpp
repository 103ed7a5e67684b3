#include "orthant/cli/parallel.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/run.hpp"
#include "orthant/comm/watchdog.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/choose.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/memory.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;

/// Needed to start the same command again under mpirun.
struct CommandLine {
  int argc = 0;
  char** argv = nullptr;
};
CommandLine& command_line() {
  static CommandLine words;
  return words;
}

plan::Plan read_plan(const std::string& path) { return plan::from_json(data::io::read_text(path), path); }

/// Ranks that the arguments name, or 0.
int ranks_asked(const ParallelArguments& arguments) {
  if (arguments.ranks > 0) return arguments.ranks;
  if (!arguments.grid.empty()) return plan::total_ranks(plan::parse_grid(arguments.grid));
  if (!arguments.plan.empty()) return read_plan(arguments.plan).ranks;
  return 0;
}

void check_ranks(int wanted, int ranks, const std::string& what) {
  if (wanted == ranks) return;
  fail(Exit::does_not_fit, "{} is for {} rank{}, but there {} {}; use --ranks {}", what, wanted, wanted == 1 ? "" : "s",
       ranks == 1 ? "is" : "are", ranks, wanted);
}

plan::Statistics statistics_from(const std::string& name) {
  static const std::vector<std::string> names{"local", "spatial", "global"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail(Exit::usage, "--statistics: unknown '{}'{}", name, base::suggestion(name, names));
  return static_cast<plan::Statistics>(found - names.begin());
}

/// The algorithm that all convolutions are to use, or nothing if it is chosen for each.
std::optional<model::Algorithm> algorithm_from(const std::string& name) {
  std::vector<std::string> names{"measured", "rule"};
  for (const model::Algorithm algorithm : model::named_algorithms) names.emplace_back(model::name_of(algorithm));
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(Exit::usage, "--algorithm: unknown '{}'{}", name, base::suggestion(name, names));
  return model::algorithm_named(name);
}

plan::Plan chosen_plan(const ParallelArguments& arguments, const model::Graph& graph, int ranks) {
  if (!arguments.plan.empty()) {
    plan::Plan plan = read_plan(arguments.plan);
    check_ranks(plan.ranks, ranks, "the plan '" + arguments.plan + "'");
    return plan;
  }
  if (!arguments.grid.empty()) {
    const plan::CompactGrid grid = plan::parse_grid(arguments.grid);
    check_ranks(plan::total_ranks(grid), ranks, "the grid " + arguments.grid);
    return plan::make_plan(graph, grid, arguments.micro_batches);
  }
  if (!arguments.strategy.empty()) return plan::make_plan(graph, arguments.strategy, ranks, arguments.micro_batches);
  if (ranks == 1) return plan::serial_plan(graph);
  const bool enough_samples = graph.nodes.front().shape.n / std::max(arguments.micro_batches, 1) >= ranks;
  return plan::make_plan(graph, enough_samples ? "data" : "data+spatial", ranks, arguments.micro_batches);
}

std::string limits_text(const engine::MeasuringLimits& limits) {
  const std::string seconds = fmt::format("at most {:.3g} s", std::min(limits.least_seconds, limits.most_seconds));
  const bool epoch_counts = limits.steps_per_epoch > 0 && limits.most_seconds > limits.least_seconds;
  return epoch_counts ? seconds + " or a tenth of the first epoch" : seconds;
}

void print_measured(const engine::Measured& measured) {
  const int all = measured.tasks + measured.left_tasks;
  if (all == 0) return;
  fmt::print(stderr, "measured {} of {} convolutions in {:.1f} s{}\n", measured.tasks, all, measured.seconds,
             measured.left_tasks == 0
                 ? ""
                 : fmt::format("; {} follow the rule until a later run has time and memory to measure them",
                               measured.left_tasks));
}

}  // namespace

void set_command_line(int argc, char** argv) { command_line() = {argc, argv}; }

void add_ranks(CLI::App& command, ParallelArguments& arguments) {
  command.add_option("--ranks", arguments.ranks, "Ranks; more than one are started with mpirun")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--threads", arguments.threads, "Threads per rank; the cores shared out if not given")
      ->check(CLI::Range(1, 4096));
}

void add_parallel(CLI::App& command, ParallelArguments& arguments) {
  add_ranks(command, arguments);
  CLI::Option* grid =
      command.add_option("--grid", arguments.grid, "How to cut: n2d2h2, n2f4, p4, ...; see docs/plans.md");
  CLI::Option* strategy = command.add_option("--strategy", arguments.strategy,
                                             "data, spatial, filter, channel, pipeline, data+filter or data+spatial");
  CLI::Option* plan = command.add_option("--plan", arguments.plan, "A plan file (JSON) that says it layer by layer");
  grid->excludes(strategy)->excludes(plan);
  strategy->excludes(plan);
  command.add_option("--micro-batches", arguments.micro_batches, "Pieces of the mini-batch that go through one by one")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--algorithm", arguments.algorithm,
                  "Of convolutions: measured (the fastest here, remembered), rule, winograd, direct, matrix or onednn")
      ->capture_default_str();
  command.add_option("--statistics", arguments.statistics, "Batch normalisation over local, spatial or global values");
}

plan::Plan plan_for(const ParallelArguments& arguments, const model::Graph& graph, int ranks) {
  plan::Plan plan = chosen_plan(arguments, graph, ranks);
  if (arguments.micro_batches > 0) plan.micro_batches = arguments.micro_batches;
  if (!arguments.statistics.empty()) {
    for (plan::NodePlan& node : plan.nodes) node.statistics = statistics_from(arguments.statistics);
  }
  if (const auto algorithm = algorithm_from(arguments.algorithm)) {
    for (plan::NodePlan& node : plan.nodes) node.kernel = *algorithm;
  }
  plan::verify(plan, graph);
  return plan;
}

double choose_algorithms(const ParallelArguments& arguments, schedule::Schedule& schedule, comm::Comm& comm,
                         engine::MeasuringLimits limits) {
  if (arguments.algorithm != "measured") return 0;
  // What cannot run is refused before anything is tried.
  comm::agree(comm, [&] { train::check_arena(schedule::place(schedule, {})); });
  // Ranks with little to measure wait for the others.
  if (comm.size() > 1) limits.most_seconds = std::chrono::duration<double>(comm::watchdog_timeout()).count() / 2;
  const std::string cache = engine::choice_cache_path();
  std::optional<FileProgress> progress;
  const auto show = [&](const engine::MeasuringProgress& at) {
    if (comm.rank() != 0) return;
    if (!progress) {
      fmt::print(stderr, "measuring {} convolutions on this machine, once; {}\n", at.tasks, limits_text(limits));
      progress.emplace("measuring", "convolutions");
    }
    progress->update(at.done, at.tasks, at.seconds_left);
  };
  const auto forgotten = [&] {
    fmt::print(stderr,
               "warning: cannot write '{}', so the next run measures again; set ORTHANT_CACHE to a file that can be "
               "written\n",
               cache);
  };
  const engine::Measured measured =
      engine::choose_algorithms(schedule, comm,
                                {.threads = threads_per_rank(arguments, comm.size()),
                                 .cache_path = cache,
                                 .most_bytes = train::available_memory_bytes() / 2 / comm.size(),
                                 .limits = limits,
                                 .progress = show,
                                 .forgotten = forgotten});
  progress.reset();
  if (comm.rank() == 0) print_measured(measured);
  return measured.seconds;
}

int threads_per_rank(const ParallelArguments& arguments, int ranks) {
  if (arguments.threads > 0) return arguments.threads;
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (set && comm::launched()) {
    int threads = 1;  // stays if that is no number
    std::from_chars(set, set + std::strlen(set), threads);
    return std::max(1, threads);
  }
  return std::max(1, comm::processors().threads / ranks);
}

void run_on_ranks(const ParallelArguments& arguments, const std::function<void(int)>& check,
                  const std::function<void(comm::Comm&)>& body) {
  const int asked = ranks_asked(arguments);
  if (asked > 1 && !comm::launched()) {
    check(asked);
    comm::launch(asked, threads_per_rank(arguments, asked), command_line().argc, command_line().argv);
  }
  const int code = comm::run([&](comm::Comm& comm) {
    if (asked > 0) comm::agree(comm, [&] { check_ranks(asked, comm.size(), "the command"); });
    body(comm);
    return 0;
  });
  if (code != 0) throw Quit{code};
}

}  // namespace orthant::cli
