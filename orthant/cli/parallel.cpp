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

std::vector<comm::Host> hosts_from(const ParallelArguments& arguments) {
  if (!arguments.hosts.empty()) return comm::parse_hosts(arguments.hosts);
  if (arguments.hostfile.empty()) return {};
  return comm::parse_host_file(data::io::read_text(arguments.hostfile), arguments.hostfile);
}

}  // namespace

int ranks_asked(const ParallelArguments& arguments) {
  return arguments.ranks > 0 ? arguments.ranks : plan::ranks_of(request_from(arguments));
}

namespace {

/// The command line of ranks is that of the process that started them, so --hosts is there, too.
void check_launcher(const ParallelArguments& arguments) {
  if (names_hosts(arguments) && !comm::launched_on_hosts())
    fail(Exit::usage, "--{} is for starting ranks, but a launcher has started them already; leave it out",
         arguments.hosts.empty() ? "hostfile" : "hosts");
}

/// Checks whether so many ranks (0: one per slot of the hosts) can run, and replaces this process by their launcher.
[[noreturn]] void start_ranks(const ParallelArguments& arguments, int asked, const std::function<void(int)>& check) {
  const std::vector<comm::Host> hosts = hosts_from(arguments);
  if (asked == 0) asked = comm::total_slots(hosts);
  const std::vector<comm::Host> used = hosts.empty() ? hosts : comm::hosts_for(hosts, asked);
  check(asked);
  const int threads = hosts.empty() ? threads_per_rank(arguments, asked) : arguments.threads;
  comm::launch({.count = asked, .threads = threads, .hosts = used}, command_line().argc, command_line().argv);
}

}  // namespace

void set_command_line(int argc, char** argv) { command_line() = {argc, argv}; }

void add_hosts(CLI::App& command, ParallelArguments& arguments) {
  // An empty text would look as if the option were not given.
  const auto is_given = [](const std::string& text) { return text.empty() ? "the value is empty" : ""; };
  CLI::Option* hosts = command.add_option("--hosts", arguments.hosts,
                                          "Machines to start ranks on, and how many on each: node1:2,node2:2");
  CLI::Option* file =
      command.add_option("--hostfile", arguments.hostfile, "The same in a file, with lines as: node1 slots=2");
  hosts->excludes(file)->check(is_given);
  file->check(is_given);
}

void add_ranks(CLI::App& command, ParallelArguments& arguments) {
  command.add_option("--ranks", arguments.ranks, "Ranks; more than one are started with mpirun")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--threads", arguments.threads, "Threads per rank; the cores shared out if not given")
      ->check(CLI::Range(1, 4096));
  add_hosts(command, arguments);
}

void add_cut(CLI::App& command, ParallelArguments& arguments) {
  CLI::Option* grid =
      command.add_option("--grid", arguments.grid, "How to cut: n2d2h2, n2f4, p4, ...; see docs/plans.md");
  CLI::Option* strategy = command.add_option(
      "--strategy", arguments.strategy,
      "data, spatial, filter, channel, pipeline, data+filter, data+spatial or auto, the fastest plan");
  CLI::Option* plan = command.add_option("--plan", arguments.plan, "A plan file (JSON) that says it layer by layer");
  grid->excludes(strategy)->excludes(plan);
  strategy->excludes(plan);
  command.add_option("--micro-batches", arguments.micro_batches, "Pieces of the mini-batch that go through one by one")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--statistics", arguments.statistics, "Batch normalisation over local, spatial or global values");
  command
      .add_option(
          "--exchange", arguments.exchange,
          "Form of all sums over ranks: direct, recursive, ring, tree or mpi; chosen by their size if not given")
      ->check(CLI::IsMember({"direct", "recursive", "ring", "tree", "mpi"}));
  command.add_option("--levels", arguments.levels, "2: sums inside each machine first; 1: machines make no difference")
      ->check(CLI::Range(1, 2));
  command
      .add_option("--most-ranks-per-machine", arguments.most_ranks_per_machine,
                  "Count machines with more ranks as several, to try on one what happens between many")
      ->check(CLI::Range(1, 1 << 20));
}

void add_parallel(CLI::App& command, ParallelArguments& arguments) {
  add_ranks(command, arguments);
  add_cut(command, arguments);
  command
      .add_option("--algorithm", arguments.algorithm,
                  "Of convolutions: measured (the fastest here, remembered), rule, winograd, direct, matrix, onednn, "
                  "winograd_large, winograd_staged or onednn_winograd")
      ->capture_default_str();
  add_errors(command, arguments.errors);
}

void add_errors(CLI::App& command, std::string& errors) {
  command
      .add_option("--error", errors,
                  "Rounding errors that measured convolutions may have: exact (at most twice a direct sum's) or fast "
                  "(at most ten times)")
      ->check(CLI::IsMember({"exact", "fast"}));
}

model::ErrorClass errors_named(const std::string& errors) {
  return errors == "fast" ? model::ErrorClass::fast : model::ErrorClass::exact;
}

namespace {

/// Of the choice and its pieces.
model::Algorithm largest_error(const plan::KernelChoice& choice) {
  const auto is_smaller = [](model::Algorithm a, model::Algorithm b) {
    return model::error_class(a) < model::error_class(b);
  };
  model::Algorithm largest = choice.algorithm;
  for (const model::ConvPiece& piece : choice.pieces) largest = std::max(largest, piece.algorithm, is_smaller);
  return largest;
}

}  // namespace

void apply_errors(const ParallelArguments& arguments, plan::Plan& plan) {
  if (arguments.errors.empty()) return;
  plan.error = errors_named(arguments.errors);
  for (const plan::NodePlan& node : plan.nodes) {
    for (const model::Pass pass : model::all_passes) {
      const model::Algorithm algorithm = largest_error(node.kernels[pass]);
      if (model::error_class(algorithm) > plan.error)
        fail(Exit::usage, "--error {}: the plan computes {} {} by {}, whose errors are larger; make another plan",
             arguments.errors, node.node, model::name_of(pass), model::name_of(algorithm));
    }
  }
}

plan::Plan plan_for(const ParallelArguments& arguments, const model::Graph& graph, int ranks) {
  check_algorithm(arguments.algorithm);
  if (arguments.strategy == "auto")
    fail(Exit::usage,
         "--strategy auto is for commands that run a network; `orthant plan -o FILE` writes such a plan, for "
         "--plan FILE");
  plan::Plan plan = plan::make_plan(graph, request_from(arguments), ranks);
  plan::ExchangeForms& forms = plan.exchanges;
  if (!arguments.exchange.empty()) {
    const plan::Form form = plan::form_from(arguments.exchange, "--exchange", plan::all_forms);
    forms = plan::forced(form, forms.two_levels);
  }
  if (arguments.levels > 0) forms.two_levels = arguments.levels == 2;
  if (arguments.most_ranks_per_machine > 0) forms.most_ranks_per_machine = arguments.most_ranks_per_machine;
  apply_errors(arguments, plan);
  return plan;
}

int threads_per_rank(const ParallelArguments& arguments) {
  if (arguments.threads > 0) return arguments.threads;
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (set && comm::launched()) {
    int threads = 1;  // kept if the variable is not a number
    std::from_chars(set, set + std::strlen(set), threads);
    return std::max(1, threads);
  }
  return arguments.share.threads;
}

int threads_per_rank(const ParallelArguments& arguments, int ranks) {
  return arguments.threads > 0 ? arguments.threads : std::max(1, comm::processors().threads / ranks);
}

bool names_hosts(const ParallelArguments& arguments) { return !arguments.hosts.empty() || !arguments.hostfile.empty(); }

void run_on_ranks(ParallelArguments& arguments, const std::function<void(int)>& check,
                  const std::function<void(comm::Comm&)>& body) {
  const int asked = ranks_asked(arguments);
  if (comm::launched()) {
    check_launcher(arguments);
  } else if (asked > 1 || names_hosts(arguments)) {
    start_ranks(arguments, asked, check);
  }
  const int code = comm::run([&](comm::Comm& comm) {
    arguments.share = comm::processor_share(comm);
    if (comm::launched_on_hosts()) comm::bind_to_share(arguments.share, threads_per_rank(arguments));
    if (asked > 0) comm::agree(comm, [&] { plan::check_rank_count("the command", asked, comm.size()); });
    body(comm);
    return 0;
  });
  if (code != 0) throw Quit{code};
}

}  // namespace orthant::cli
