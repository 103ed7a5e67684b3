#include "orthant/comm/launch.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/affinity.hpp"
#include "orthant/comm/job_files.hpp"
#include "orthant/comm/lifeline.hpp"
#include "orthant/comm/machine.hpp"
#include "orthant/comm/reach.hpp"
#include "orthant/comm/supervisor.hpp"
#include "orthant/comm/version.hpp"
#include "orthant/comm/watchdog.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

/// Tells ranks that this program started them on hosts.
constexpr const char* hosts_variable = "ORTHANT_STARTED_ON_HOSTS";

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < 0 || number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(number);
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

/// Open MPI would end with pages of messages.
void check_temporary_directory() {
  const std::string folder = temporary_directory();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    fail(Exit::io, "cannot write to '{}', where Open MPI keeps temporary files: {}; set TMPDIR to another directory",
         folder, std::strerror(errno));
}

void add_words(LaunchCommand& command, std::initializer_list<const char*> words) {
  command.words.insert(command.words.end(), words.begin(), words.end());
}

std::string sharing_warning(int ranks, int threads, int processors, const std::string& where) {
  return fmt::format("{} rank{} of {} thread{} on {} processor{}{}: ranks share processors, so the job is slow", ranks,
                     ranks > 1 ? "s" : "", threads, threads > 1 ? "s" : "", processors, processors > 1 ? "s" : "",
                     where);
}

/// Ranks that wait must yield the processor to the others.
void share_processors(LaunchCommand& command) {
  command.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  command.environment.emplace_back("OMP_WAIT_POLICY", "passive");
}

void place_here(LaunchCommand& command, const LaunchRequest& request, const Processors& processors) {
  const std::int64_t wanted = std::int64_t{request.ranks} * request.threads;
  if (wanted <= processors.threads && processors.is_part) {
    // mpirun would bind ranks to processors that it is not allowed to use. Unbound ranks inherit its own set.
    add_words(command, {"--oversubscribe", "--bind-to", "none"});
  } else if (wanted <= processors.threads) {
    // With hyper-threading every rank gets whole cores as long as there are enough of them.
    if (wanted > processors.cores) add_words(command, {"--use-hwthread-cpus"});
    add_words(command, {"--bind-to", wanted > processors.cores ? "hwthread" : "core", "--map-by"});
    command.words.push_back(fmt::format("slot:PE={}", request.threads));
  } else {
    add_words(command, {"--oversubscribe", "--bind-to", "none"});
    share_processors(command);
    command.warning = sharing_warning(request.ranks, request.threads, processors.threads, "");
  }
}

/// mpirun's own daemons must notice that a host is gone, two seconds after the ranks, who say so.
void watch_daemons(LaunchCommand& command) {
  const auto seconds = static_cast<int>(link_timeout().count()) - 1;
  command.environment.emplace_back("OMPI_MCA_oob_tcp_keepalive_time", fmt::format("{}", seconds));
  command.environment.emplace_back("OMPI_MCA_oob_tcp_keepalive_intvl", "1");
  command.environment.emplace_back("OMPI_MCA_oob_tcp_keepalive_probes", "3");
}

/// Over TCP, Open MPI has a receiver ask for the rest of a long message once, and the request queues in the socket
/// behind megabytes of what the receiver itself sends: two hosts that exchange take turns, at half the speed of the
/// link. Short fragments, asked for one after the other, keep both directions busy.
void keep_both_directions_busy(LaunchCommand& command) {
  command.environment.emplace_back("OMPI_MCA_btl_tcp_rdma_pipeline_frag_size", "131072");
}

/// Ranks are not bound: how many processors a host has, only its ranks know.
void place_on_hosts(LaunchCommand& command, const LaunchRequest& request) {
  add_words(command, {"--host"});
  command.words.push_back(to_text(request.hosts));
  add_words(command, {"--wdir"});
  command.words.push_back(request.folder);
  add_words(command, {"--map-by", "slot", "--bind-to", "none"});
  command.environment.emplace_back(hosts_variable, "1");
  watch_daemons(command);
  keep_both_directions_busy(command);
  for (std::size_t i = 0; i < request.hosts.size() && i < request.host_processors.size(); ++i) {
    const Host& host = request.hosts[i];
    const int threads = std::max(1, request.threads);
    if (std::int64_t{host.slots} * threads <= request.host_processors[i].value_or(1 << 30)) continue;
    if (command.warning.empty()) {
      share_processors(command);
      command.warning =
          sharing_warning(host.slots, threads, *request.host_processors[i], fmt::format(" of host '{}'", host.name));
    }
  }
  std::vector<std::string> variables = request.variables;
  for (const auto& [name, value] : command.environment)
    if (name.starts_with("ORTHANT_") || name == "OMP_WAIT_POLICY") variables.push_back(name);
  std::sort(variables.begin(), variables.end());
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  for (const std::string& name : variables) {
    add_words(command, {"-x"});
    command.words.push_back(name);
  }
}

/// Adds what only the hosts and this process know to a request.
void ask_for_hosts(LaunchRequest& request, std::span<const Host> hosts) {
  request.hosts = hosts_for(hosts, request.ranks);
  request.folder = std::filesystem::current_path().string();
  request.variables = variables_for_ranks(environ);
  const Expectation expected{
      .program = request.program, .folder = request.folder, .version = "orthant " + version_text()};
  request.host_processors = ask_hosts(request.hosts, expected, launch_agent());
  for (std::size_t i = 0; i < request.hosts.size(); ++i)
    if (is_this_machine(request.hosts[i].name)) request.host_processors[i] = processors().threads;
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
  const int threads = std::max(1, static_cast<int>(allowed_processors().size()));
  return {.cores = std::max(1, static_cast<int>(allowed_cores().size())),
          .threads = threads,
          .is_part = threads < sysconf(_SC_NPROCESSORS_ONLN)};
}

LaunchCommand launch_command(const LaunchRequest& request, const Processors& processors) {
  LaunchCommand command;
  command.words = {"mpirun", "--quiet", "-np", fmt::format("{}", request.ranks)};
  command.has_threads = request.threads > 0;
  if (command.has_threads) {
    add_words(command, {"-x", "OMP_NUM_THREADS"});
    command.environment.emplace_back("OMP_NUM_THREADS", fmt::format("{}", request.threads));
  }
  if (request.is_root) {
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  if (request.hosts.empty()) {
    place_here(command, request, processors);
  } else {
    place_on_hosts(command, request);
  }
  command.words.push_back(request.program);
  command.words.insert(command.words.end(), request.arguments.begin(), request.arguments.end());
  return command;
}

std::vector<std::string> variables_for_ranks(const char* const* environment) {
  constexpr std::array<std::string_view, 6> prefixes{"ORTHANT_", "OMP_", "GOMP_", "ONEDNN_", "DNNL_", "HDF5_"};
  constexpr std::array<std::string_view, 6> others{"LD_LIBRARY_PATH", "LD_PRELOAD",    "ASAN_OPTIONS",
                                                   "LSAN_OPTIONS",    "UBSAN_OPTIONS", "TSAN_OPTIONS"};
  std::vector<std::string> names;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool is_ours = std::any_of(prefixes.begin(), prefixes.end(),
                                     [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (name != "OMP_NUM_THREADS" && (is_ours || std::find(others.begin(), others.end(), name) != others.end()))
      names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void launch(const NewRanks& ranks, int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  LaunchRequest request{.ranks = ranks.count,
                        .threads = ranks.threads,
                        .program = this_program(),
                        .arguments = arguments,
                        .is_root = geteuid() == 0};
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty())
    fail(Exit::missing_input, "mpirun is not installed, and --ranks needs it; on Debian: apt-get install openmpi-bin");
  if (!ranks.hosts.empty()) ask_for_hosts(request, ranks.hosts);
  LaunchCommand command = launch_command(request, processors());
  allow_open_files(ranks.count);
  if (!command.warning.empty()) fmt::print(stderr, "warning: {}\n", command.warning);
  if (!command.has_threads) unsetenv("OMP_NUM_THREADS");
  for (const auto& [name, value] : command.environment)
    setenv(name.c_str(), value.c_str(), name == "OMP_NUM_THREADS" ? 1 : 0);
  check_temporary_directory();
  SupervisedJob job{.mpirun = mpirun,
                    .words = std::move(command.words),
                    .ranks = ranks.count,
                    .ranks_here = ranks.count,
                    .on_hosts = !ranks.hosts.empty(),
                    .timeout = watchdog_timeout()};
  if (job.on_hosts) {
    job.ranks_here = 0;
    for (const Host& host : request.hosts) job.ranks_here += is_this_machine(host.name) ? host.slots : 0;
  }
  std::fflush(nullptr);
  int code = 0;
  {
    Supervisor supervisor(std::move(job));
    code = supervisor.run();
  }
  std::fflush(nullptr);
  // Nothing of this process is needed any more, and destructors of libraries would only take time.
  _exit(code);
}

bool launched_on_hosts() { return std::getenv(hosts_variable) != nullptr; }

std::string binding_text() {
  return fmt::format("host {}, pid {}, processors {}", host_name(), getpid(), ranges_text(allowed_processors()));
}

}  // namespace orthant::comm
