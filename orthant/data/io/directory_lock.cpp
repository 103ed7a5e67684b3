#include "orthant/data/io/directory_lock.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/printable.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

std::string lock_path(const std::string& directory) { return directory + "/.lock"; }

std::string holder_in(int descriptor) {
  std::array<char, 200> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  return base::one_line({text.data(), static_cast<std::size_t>(got > 0 ? got : 0)});
}

/// False if another process has it. File systems without locks let everybody pass.
bool try_lock(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return true;
  }
  return true;
}

[[noreturn]] void fail_taken(const std::string& directory, int descriptor) {
  const std::string holder = holder_in(descriptor);
  ::close(descriptor);
  fail(Exit::busy, "'{}' is used by another run{}; wait for its end, or choose another output", directory,
       holder.empty() ? "" : " (" + holder + ")");
}

int open_lock(const std::string& path, int flags) {
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0644);
}

/// Whether the file still has its name: its last owner may have removed it meanwhile.
bool is_there(int descriptor, const std::string& path) {
  struct stat mine {};
  struct stat named {};
  return ::fstat(descriptor, &mine) == 0 && ::lstat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory) : path_(lock_path(directory)) {
  while (true) {
    descriptor_ = open_lock(path_, O_CREAT);
    if (descriptor_ < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
    if (!try_lock(descriptor_)) fail_taken(directory, descriptor_);
    if (is_there(descriptor_, path_)) break;
    ::close(descriptor_);
  }
  std::array<char, 65> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string holder = fmt::format("host {}, pid {}", host.data(), ::getpid());
  // The lock holds without the name of its owner, too.
  if (::ftruncate(descriptor_, 0) != 0) return;
  [[maybe_unused]] const ssize_t put = ::pwrite(descriptor_, holder.data(), holder.size(), 0);
}

DirectoryLock::~DirectoryLock() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

void check_not_locked(const std::string& directory) {
  const int descriptor = open_lock(lock_path(directory), 0);
  if (descriptor < 0) return;
  if (!try_lock(descriptor)) fail_taken(directory, descriptor);
  ::close(descriptor);
}

}  // namespace orthant::data::io
