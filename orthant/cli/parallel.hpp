#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/comm/machine.hpp"
#include "orthant/plan/plan.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace orthant::cli {

/// How a command is to be cut over ranks.
struct ParallelArguments {
  int ranks = 0;  ///< 0: what grid, plan or launcher say
  int threads = 0;
  std::string hosts, hostfile;  ///< where to start them; both empty: on this machine
  std::string grid, strategy, plan;
  int micro_batches = 0;
  std::string exchange;            ///< of sums over ranks; empty: by size
  int levels = 0;                  ///< 0: the plan's
  int most_ranks_per_machine = 0;  ///< 0: the plan's
  std::string statistics;
  std::string algorithm = "measured";
  std::string errors;  ///< class of the algorithms' errors; empty: the plan's
  /// What this rank has of its machine; run_on_ranks() finds it when the ranks have started.
  comm::ProcessorShare share{};
};

/// --hosts and --hostfile alone.
void add_hosts(CLI::App& command, ParallelArguments& arguments);
/// --ranks, --threads, --hosts and --hostfile alone.
void add_ranks(CLI::App& command, ParallelArguments& arguments);
/// --grid, --strategy, --plan, --micro-batches, --statistics and the form of exchanges.
void add_cut(CLI::App& command, ParallelArguments& arguments);
/// All of these, --algorithm and --error.
void add_parallel(CLI::App& command, ParallelArguments& arguments);

/// --error alone.
void add_errors(CLI::App& command, std::string& errors);
/// What a user gave there; `exact` if nothing.
model::ErrorClass errors_named(const std::string& errors);

/// Ranks that the arguments name, or 0.
int ranks_asked(const ParallelArguments& arguments);

/// The plan that the arguments ask for, on so many ranks.
plan::Plan plan_for(const ParallelArguments& arguments, const model::Graph& graph, int ranks);

/// Sets the class of errors that --error names in the plan. Throws Error if the plan names algorithms with larger ones.
void apply_errors(const ParallelArguments& arguments, plan::Plan& plan);

/// Threads of this rank, once the ranks have started: as many as were asked for, or its share of its machine.
int threads_per_rank(const ParallelArguments& arguments);
/// Threads of each of `ranks` ranks that are to be started on this machine.
int threads_per_rank(const ParallelArguments& arguments, int ranks);
/// Whether the ranks are to be started on other machines than this one, of which nothing is known here.
bool names_hosts(const ParallelArguments& arguments);

/// Runs `body` on all ranks: those this process was started with or, with --ranks, --hosts or a grid of more than one
/// part, those that mpirun starts in its place. Before it does, `check` is called with their number, and throws Error
/// if `body` could not run: no process is started then. Throws Quit if the job failed; the error has been printed then.
void run_on_ranks(ParallelArguments& arguments, const std::function<void(int)>& check,
                  const std::function<void(comm::Comm&)>& body);

/// Ends the program with this code, without printing anything.
struct Quit {
  int code = 0;
};

/// Sets the arguments that this program was started with, the program's name included; main() calls it.
void set_command_line(int argc, char** argv);

}  // namespace orthant::cli
