#include "orthant/comm/command.hpp"

#include "orthant/base/format.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace orthant::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// The exit code, or -1 for a process that a signal ended.
int code_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Starts the program with its output into `end`; returns an error number.
int spawn(std::vector<std::string>& words, int end, Errors errors, pid_t& process) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
  if (errors == Errors::collected) {
    posix_spawn_file_actions_adddup2(&actions, end, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that what the program starts can be ended with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int error = posix_spawnp(&process, pointers.front(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Answer run_command(std::vector<std::string> words, std::chrono::seconds patience, Errors errors) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.text = std::strerror(errno)};
  pid_t process = 0;
  const int error = spawn(words, ends[1], errors, process);
  close(ends[1]);
  Answer answer;
  if (error != 0) {
    close(ends[0]);
    return {.text = fmt::format("{}: {}", words.front(), std::strerror(error))};
  }
  const Clock::time_point end = Clock::now() + patience;
  for (bool is_open = true; is_open;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd file{ends[0], POLLIN, 0};
    if (left <= 0 || poll(&file, 1, static_cast<int>(left)) == 0) {
      kill(-process, SIGKILL);
      answer.text += fmt::format("\nno answer in {} s", patience.count());
      break;
    }
    std::array<char, 4096> buffer{};
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    is_open = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) answer.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  answer.code = code_of(process);
  return answer;
}

}  // namespace orthant::comm
