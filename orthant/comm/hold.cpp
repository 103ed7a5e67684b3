#include "orthant/comm/hold.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/process.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace orthant::comm {
namespace {

// A signal handler can only reach globals.
std::atomic<pid_t> launcher_pid{0};
std::atomic<int> launcher{-1};  ///< a pidfd
std::atomic<bool> is_held{false};

/// mpirun and mpiexec are links to it.
bool is_open_mpi(pid_t pid) {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).filename().string();
  return !error && (name.starts_with("orterun") || name.starts_with("orted"));
}

[[noreturn]] void release_after(int rank, int held) {
  become_guard({rank, held});
  wait_for_end(0);
  signal_process(1, SIGCONT);
  _exit(0);
}

}  // namespace

void prepare_to_hold_launcher() {
  const pid_t parent = getppid();
  if (!is_open_mpi(parent)) return;
  const int file = open_process(parent);
  if (file < 0 || getppid() != parent) return;
  const char* place = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  // The other ranks of the machine are watched by their neighbours.
  if (place != nullptr && std::string_view(place) == "0") {
    const int me = open_process(getpid());
    const pid_t child = me < 0 ? -1 : fork();
    if (child == 0) release_after(me, file);
    if (me >= 0) close(me);
    if (child < 0) return;
  }
  launcher = file;
  launcher_pid = parent;
}

bool is_launcher(pid_t sender) noexcept { return sender > 0 && sender == launcher_pid; }

void hold_launcher() noexcept {
  if (launcher < 0) return;
  is_held = true;
  signal_process(launcher, SIGSTOP);
}

void release_launcher() noexcept {
  if (is_held.exchange(false)) signal_process(launcher, SIGCONT);
}

}  // namespace orthant::comm
