#include "orthant/base/input_file.hpp"

#include "orthant/base/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace orthant::base {
namespace {

[[noreturn]] void fail_io(const char* what, const std::string& path) {
  const int reason = errno;
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  fail(missing ? Exit::missing_input : Exit::io, "cannot {} '{}': {}", what, path, std::strerror(reason));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) fail_io("open", path_);
  adopt();
}

InputFile::InputFile(int descriptor, std::string path) : path_(std::move(path)), descriptor_(descriptor) { adopt(); }

void InputFile::adopt() {
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    fail(Exit::io, "cannot read '{}': it is not a regular file", path_);
  }
  bytes_ = status.st_size;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::int64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(descriptor_, into.data() + done, into.size() - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path_);
    if (got == 0)
      fail(Exit::io, "cannot read '{}': it ends at byte {}; was it shortened while it was read?", path_,
           offset + static_cast<std::int64_t>(done));
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace orthant::base
