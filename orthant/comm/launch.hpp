#pragma once

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
  int threads = 1;      ///< per rank
  std::string program;  ///< path
  std::span<const std::string> arguments{};
  bool is_root = false;  ///< the user, not the rank
};

/// How to start a program on many ranks. It depends only on the request, not on the machine that asks.
struct LaunchCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>>
      environment;      ///< set unless it is set already; OMP_NUM_THREADS is always set
  std::string warning;  ///< one line, or empty
};
LaunchCommand launch_command(const LaunchRequest& request, const Processors& processors);

/// Replaces this process by mpirun, which starts this program with these arguments on that many ranks. Throws Error if
/// mpirun is not installed.
[[noreturn]] void launch(int ranks, int threads, int argc, const char* const* argv);

/// Where this process may run: "host vm, pid 4711, processors 0-1".
std::string binding_text();

}  // namespace orthant::comm
