#include "orthant/cli/parallel.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/run.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/plan/exchange_forms.hpp"
#include "orthant/plan/request.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

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

plan::Statistics statistics_from(const std::string& name) {
  static const std::vector<std::string> names{"local", "spatial", "global"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail(Exit::usage, "--statistics: unknown '{}'{}", name, base::suggestion(name, names));
  return static_cast<plan::Statistics>(found - names.begin());
}

plan::PlanRequest request_from(const ParallelArguments& arguments) {
  plan::PlanRequest request{
      .grid = arguments.grid, .strategy = arguments.strategy, .micro_batches = arguments.micro_batches};
  if (!arguments.plan.empty()) {
    request.plan = plan::from_json(data::io::read_text(arguments.plan), arguments.plan);
    request.plan_path = arguments.plan;
  }
  if (!arguments.statistics.empty()) request.statistics = statistics_from(arguments.statistics);
  return request;
}

}  // namespace

int ranks_asked(const ParallelArguments& arguments) {
  return arguments.ranks > 0 ? arguments.ranks : plan::ranks_of(request_from(arguments));
}

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
  command.add_option("--exchange", arguments.exchange,
                     "Form of all sums over ranks: direct, recursive, ring or mpi; chosen by their size if not given");
  command.add_option("--levels", arguments.levels, "2: sums inside each machine first; 1: machines make no difference")
      ->check(CLI::Range(1, 2));
  command
      .add_option("--most-ranks-per-machine", arguments.most_ranks_per_machine,
                  "Count machines with more ranks as several, to try on one what happens between many")
      ->check(CLI::Range(1, 1 << 20));
}

plan::Plan plan_for(const ParallelArguments& arguments, const model::Graph& graph, int ranks) {
  check_algorithm(arguments.algorithm);
  plan::Plan plan = plan::make_plan(graph, request_from(arguments), ranks);
  plan::ExchangeForms& forms = plan.exchanges;
  if (!arguments.exchange.empty()) {
    const plan::Form form = plan::form_from(arguments.exchange, "--exchange", true);
    forms = plan::forced(form, forms.two_levels);
  }
  if (arguments.levels > 0) forms.two_levels = arguments.levels == 2;
  if (arguments.most_ranks_per_machine > 0) forms.most_ranks_per_machine = arguments.most_ranks_per_machine;
  return plan;
}

int threads_per_rank(const ParallelArguments& arguments, int ranks) {
  if (arguments.threads > 0) return arguments.threads;
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (set && comm::launched()) {
    int threads = 1;  // kept if the variable is not a number
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
    if (asked > 0) comm::agree(comm, [&] { plan::check_rank_count("the command", asked, comm.size()); });
    body(comm);
    return 0;
  });
  if (code != 0) throw Quit{code};
}

}  // namespace orthant::cli
