#include "orthant/comm/launch.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < 0 || number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(number);
}

/// The numbers of the hardware threads that this process may run on.
std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  // The call fails if the machine has more processors than the set can hold, so the set grows until it is large enough.
  for (int capacity = CPU_SETSIZE; capacity <= 64 * CPU_SETSIZE; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int i = 0; i < capacity; ++i)
        if (CPU_ISSET_S(static_cast<std::size_t>(i), bytes, set)) allowed.push_back(i);
    }
    CPU_FREE(set);
    if (!allowed.empty()) break;
  }
  return allowed;
}

/// "0-3,8": runs of consecutive numbers.
std::string ranges_text(std::span<const int> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

/// Finds a program as a shell would.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::string file = folders.substr(begin, end - begin) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "";
}

/// mpirun hangs if it cannot open enough files.
void allow_open_files(int ranks) {
  const rlim_t wanted = 128 + 16 * static_cast<rlim_t>(ranks);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < wanted)
    fail(Exit::does_not_fit, "{} ranks need {} open files, but {} are allowed; raise the limit (ulimit -n)", ranks,
         wanted, limit.rlim_max);
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string this_program() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0)
    fail(Exit::io, "cannot read /proc/self/exe: {}; start the program with mpirun", std::strerror(errno));
  return path.data();
}

}  // namespace

std::optional<Launched> launched() {
  const std::array<std::pair<const char*, const char*>, 3> launchers{{
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
  }};
  for (const auto& [rank_name, size_name] : launchers) {
    const std::optional<int> rank = number_in_environment(rank_name);
    const std::optional<int> size = number_in_environment(size_name);
    // A shell inside a Slurm allocation is a step of one task.
    const bool is_shell = std::string_view(rank_name) == "SLURM_PROCID" && size == 1;
    if (rank && size && !is_shell) return Launched{.rank = *rank, .size = *size};
  }
  return std::nullopt;
}

Processors processors() {
  const std::vector<int> allowed = allowed_processors();
  std::set<std::string> cores;
  for (const int processor : allowed) {
    std::string siblings;
    std::getline(std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor)),
                 siblings);
    cores.insert(siblings.empty() ? fmt::format("{}", processor) : siblings);
  }
  const int threads = std::max(1, static_cast<int>(allowed.size()));
  return {.cores = std::max(1, static_cast<int>(cores.size())),
          .threads = threads,
          .is_part = threads < sysconf(_SC_NPROCESSORS_ONLN)};
}

LaunchCommand launch_command(const LaunchRequest& request, const Processors& processors) {
  LaunchCommand command;
  command.words = {"mpirun", "--quiet", "-np", fmt::format("{}", request.ranks), "-x", "OMP_NUM_THREADS"};
  const auto add = [&](std::initializer_list<const char*> words) {
    command.words.insert(command.words.end(), words.begin(), words.end());
  };
  command.environment = {{"OMP_NUM_THREADS", fmt::format("{}", request.threads)}};
  if (request.is_root) {
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }

  const std::int64_t wanted = std::int64_t{request.ranks} * request.threads;
  if (wanted <= processors.threads && processors.is_part) {
    // mpirun would bind ranks to processors that it is not allowed to use. Unbound ranks inherit its own set.
    add({"--oversubscribe", "--bind-to", "none"});
  } else if (wanted <= processors.threads) {
    // With hyper-threading every rank gets whole cores as long as there are enough of them.
    if (wanted > processors.cores) add({"--use-hwthread-cpus"});
    add({"--bind-to", wanted > processors.cores ? "hwthread" : "core", "--map-by"});
    command.words.push_back(fmt::format("slot:PE={}", request.threads));
  } else {
    add({"--oversubscribe", "--bind-to", "none"});
    // Ranks that wait must yield the processor to the others.
    command.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    command.environment.emplace_back("OMP_WAIT_POLICY", "passive");
    command.warning =
        fmt::format("{} rank{} of {} thread{} on {} processor{}: ranks share processors, so the job is slow",
                    request.ranks, request.ranks > 1 ? "s" : "", request.threads, request.threads > 1 ? "s" : "",
                    processors.threads, processors.threads > 1 ? "s" : "");
  }
  command.words.push_back(request.program);
  command.words.insert(command.words.end(), request.arguments.begin(), request.arguments.end());
  return command;
}

void launch(int ranks, int threads, int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  LaunchCommand command = launch_command({.ranks = ranks,
                                          .threads = threads,
                                          .program = this_program(),
                                          .arguments = arguments,
                                          .is_root = geteuid() == 0},
                                         processors());
  const std::string mpirun = find_program(command.words.front());
  if (mpirun.empty())
    fail(Exit::missing_input, "mpirun is not installed, and --ranks needs it; on Debian: apt-get install openmpi-bin");
  allow_open_files(ranks);
  if (!command.warning.empty()) fmt::print(stderr, "warning: {}\n", command.warning);
  for (const auto& [name, value] : command.environment)
    setenv(name.c_str(), value.c_str(), name == "OMP_NUM_THREADS" ? 1 : 0);
  std::vector<char*> words;
  for (std::string& word : command.words) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  execv(mpirun.c_str(), words.data());
  fail(Exit::io, "cannot start '{}': {}", mpirun, std::strerror(errno));
}

std::string binding_text() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("host {}, pid {}, processors {}", host.data(), getpid(), ranges_text(allowed_processors()));
}

}  // namespace orthant::comm
