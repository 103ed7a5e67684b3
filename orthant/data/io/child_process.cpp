#include "orthant/data/io/child_process.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

std::int64_t address_space_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

void limit(decltype(RLIMIT_AS) what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  now.rlim_cur = now.rlim_max == RLIM_INFINITY ? most : std::min(most, now.rlim_max);
  ::setrlimit(what, &now);
}

/// Resets the signal handlers of the parent (those of MPI print a backtrace), discards what libraries print before they
/// abort, and sets limits.
void become_child(const ChildLimits& limits) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGXCPU, SIGPIPE})
    ::signal(signal, SIG_DFL);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  const std::int64_t space = address_space_bytes();
  if (space > 0) limit(RLIMIT_AS, static_cast<rlim_t>(space + limits.memory_bytes));
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
}

void allow_cpu(int seconds) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  limit(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1 + seconds));
}

bool write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> piece{};
  while (true) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::string death_of(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return "it took too long";
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/// Runs one child on the items from `first` on. Appends the lines that it wrote; returns its status.
int run_one(std::size_t first, std::size_t count, const std::function<std::string(std::size_t)>& work,
            const ChildLimits& limits, std::vector<ChildResult>& results) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Exit::io, "cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    fail(Exit::io, "cannot start a process to check files: {}", std::strerror(reason));
  }
  if (child == 0) {
    become_child(limits);
    bool written = true;
    for (std::size_t i = first; i < count && written; ++i) {
      allow_cpu(limits.cpu_seconds);
      written = write_all(ends[1], work(i) + "\n");
    }
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    results.push_back({.text = text.substr(begin, end - begin), .death = {}});
    begin = end + 1;
  }
  return status;
}

}  // namespace

std::vector<ChildResult> run_in_child(std::size_t count, const std::function<std::string(std::size_t)>& work,
                                      const ChildLimits& limits) {
  std::vector<ChildResult> results;
  while (results.size() < count) {
    const int status = run_one(results.size(), count, work, limits, results);
    if (results.size() < count) results.push_back({.text = {}, .death = death_of(status)});
  }
  return results;
}

}  // namespace orthant::data::io
