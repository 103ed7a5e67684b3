#pragma once

#include "orthant/comm/hosts.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orthant::comm {

/// This process as its launcher describes it.
struct Launched {
  int rank = 0;
  int size = 1;
};

/// What mpirun or srun put into the environment; nothing if neither of them started this process.
std::optional<Launched> launched();

/// The processors this process may run on.
struct Processors {
  int cores = 1;
  int threads = 1;       ///< hardware threads; more than cores with hyper-threading
  bool is_part = false;  ///< the machine has more processors than this process may use
};
Processors processors();

struct LaunchRequest {
  int ranks = 1;
  int threads = 1;      ///< per rank; 0 on hosts: each machine shares out its processors
  std::string program;  ///< path
  std::span<const std::string> arguments{};
  bool is_root = false;  ///< the user, not the rank
  /// As many slots as ranks; empty: this machine.
  std::vector<Host> hosts{};
  std::vector<std::optional<int>> host_processors{};  ///< hardware threads of each host, where they are known
  std::string folder{};                               ///< the working directory, which all hosts have
  std::vector<std::string> variables{};               ///< of the environment, for other hosts
};

/// How to start a program on many ranks. It depends only on the request, not on the machine that asks.
struct LaunchCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>>
      environment;          ///< set unless it is set already; OMP_NUM_THREADS is always set
  bool has_threads = true;  ///< without, OMP_NUM_THREADS is removed: every rank finds its own number
  std::string warning;      ///< one line, or empty
};
LaunchCommand launch_command(const LaunchRequest& request, const Processors& processors);

/// Ranks to start.
struct NewRanks {
  int count = 1;
  int threads = 1;            ///< per rank; 0 on hosts: each machine shares out its processors
  std::vector<Host> hosts{};  ///< empty: this machine
};

/// Starts this program with these arguments under mpirun, waits for the end of the job and ends this process with its
/// exit code. Throws Error if mpirun is not installed or a host cannot run the program; nothing is started then.
[[noreturn]] void launch(const NewRanks& ranks, int argc, const char* const* argv);

/// Whether launch() started this process on hosts, so that it finds its processors itself.
bool launched_on_hosts();

/// The variables of an environment ("NAME=value") that ranks on other hosts need, without OMP_NUM_THREADS.
std::vector<std::string> variables_for_ranks(const char* const* environment);

/// Where this process may run: "host vm, pid 4711, processors 0-1".
std::string binding_text();

}  // namespace orthant::comm
