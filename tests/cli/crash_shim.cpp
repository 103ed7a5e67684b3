// Preloaded into `orthant` by crashes_test.py: kills the process in front of a call that changes a checkpoint.
// ORTHANT_TEST_CRASH is the number of that call, from 1 on; with 0 nothing happens, and the calls are written, one per
// line, into the file that ORTHANT_TEST_CALLS names. ORTHANT_TEST_ERROR makes the call fail with that errno instead.
// With ORTHANT_TEST_RANK only calls of that rank count.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::string path_of(int file) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path.data(), path.size() - 1);
  return length > 0 ? path.data() : "";
}

void note(const std::string& line) {
  const char* name = std::getenv("ORTHANT_TEST_CALLS");
  if (name == nullptr) return;
  static const int file =
      next<int (*)(const char*, int, ...)>("open")(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  static_cast<void>(next<ssize_t (*)(int, const void*, std::size_t)>("write")(file, line.data(), line.size()));
}

bool is_of_rank() {
  const char* wanted = std::getenv("ORTHANT_TEST_RANK");
  const char* mine = std::getenv("OMPI_COMM_WORLD_RANK");
  return wanted == nullptr || (mine != nullptr && std::string(wanted) == mine);
}

/// True if the call is to fail; does not return from the one in front of which the process dies.
bool fails_in(const char* call, const std::string& path) {
  static std::atomic<int> calls = 0;
  if (path.find("/checkpoints") == std::string::npos) return false;
  const char* wanted = std::getenv("ORTHANT_TEST_CRASH");
  if (wanted == nullptr || !is_of_rank()) return false;
  const int number = ++calls;
  note(std::string(call) + " " + path + "\n");
  if (number != std::atoi(wanted)) return false;
  const char* error = std::getenv("ORTHANT_TEST_ERROR");
  if (error == nullptr) kill(getpid(), SIGKILL);
  errno = std::atoi(error);
  return true;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(rest, unsigned) : 0U);
  va_end(rest);
  if ((flags & O_CREAT) != 0 && fails_in("open", path)) return -1;
  return next<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}

int mkdir(const char* path, mode_t mode) {
  if (fails_in("mkdir", path)) return -1;
  return next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  if (file > 2 && fails_in("write", path_of(file))) return -1;
  return next<ssize_t (*)(int, const void*, std::size_t)>("write")(file, bytes, count);
}

int fsync(int file) {
  if (fails_in("fsync", path_of(file))) return -1;
  return next<int (*)(int)>("fsync")(file);
}

int rename(const char* from, const char* to) {
  if (fails_in("rename", to)) return -1;
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int link(const char* from, const char* to) {
  if (fails_in("link", to)) return -1;
  return next<int (*)(const char*, const char*)>("link")(from, to);
}

int unlinkat(int directory, const char* path, int flags) {
  const std::string whole = path[0] == '/' ? path : path_of(directory) + "/" + path;
  if (fails_in("unlinkat", whole)) return -1;
  return next<int (*)(int, const char*, int)>("unlinkat")(directory, path, flags);
}

}  // extern "C"
