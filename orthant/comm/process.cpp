#include "orthant/comm/process.hpp"

#include "orthant/base/format.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace orthant::comm {
namespace {

namespace fs = std::filesystem;

std::optional<pid_t> number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

/// The entries of a directory that are named by a number.
std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto number = number_of(entry->path())) numbers.push_back(*number);
  return numbers;
}

}  // namespace

int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool has_ended(int process) {
  pollfd file{process, POLLIN, 0};
  return process >= 0 && poll(&file, 1, 0) == 1;
}

void wait_for_end(int process) {
  pollfd file{process, POLLIN, 0};
  while (poll(&file, 1, -1) < 0) {
  }
}

void become_guard(std::initializer_list<int> processes) {
  setsid();
  prctl(PR_SET_NAME, "orthant-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  int next = 0;
  for (const int process : processes) dup2(process, next++);
  close_range(static_cast<unsigned>(next), ~0U, 0);
}

void signal_process(int process, int signal) {
  if (process >= 0) syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0);
}

bool is_stopped(pid_t pid) {
  std::string line;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), line);
  const std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && (line[name_end + 2] == 'T' || line[name_end + 2] == 't');
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  for (const pid_t task : numbers_in(tasks)) {
    std::ifstream list(fmt::format("{}/{}/children", tasks, task));
    children.insert(children.end(), std::istream_iterator<pid_t>(list), {});
  }
  std::sort(children.begin(), children.end());
  return children;
}

std::string variable_of(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return "";
}

std::vector<pid_t> processes_with(const std::string& name, const std::string& value) {
  std::vector<pid_t> found;
  for (const pid_t pid : numbers_in("/proc"))
    if (variable_of(pid, name) == value) found.push_back(pid);
  return found;
}

}  // namespace orthant::comm
