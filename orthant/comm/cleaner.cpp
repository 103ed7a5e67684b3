#include "orthant/comm/cleaner.hpp"

#include "orthant/comm/attendance.hpp"
#include "orthant/comm/job_files.hpp"
#include "orthant/comm/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

namespace orthant::comm {
namespace {

/// Ranks that see that mpirun is gone end in less.
constexpr std::chrono::milliseconds patience{1000}, period{20};

[[noreturn]] void clean_up(pid_t mpirun, const std::string& address) {
  std::string job;
  for (std::chrono::milliseconds waited{}; waited < patience; waited += period) {
    const std::vector<pid_t> left = processes_with(Attendance::variable, address);
    for (const pid_t pid : left)
      if (job.empty()) job = variable_of(pid, "PMIX_NAMESPACE");
    if (left.empty()) break;
    std::this_thread::sleep_for(period);
  }
  for (const pid_t pid : processes_with(Attendance::variable, address)) kill(pid, SIGKILL);
  remove_job_files(mpirun, job);
  _exit(0);
}

}  // namespace

Cleaner::Cleaner(pid_t mpirun, const std::string& address) {
  const int command = open_process(getpid());
  if (command < 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    become_guard({command});
    wait_for_end(0);
    clean_up(mpirun, address);
  }
  close(command);
}

Cleaner::~Cleaner() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace orthant::comm
