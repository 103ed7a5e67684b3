#include "orthant/data/io/file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace orthant::data::io {
namespace {

using base::Exit;
using base::fail;

/// The directory entry must survive a crash, not only the bytes of the file.
void sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Who may write to a directory need not be allowed to read it, and some file systems cannot sync one.
  if (directory < 0 && errno == EACCES) return;
  const bool synced = directory >= 0 && (base::sync_file(directory) || errno == EINVAL || errno == ENOTSUP);
  const int reason = errno;
  if (directory >= 0) ::close(directory);
  if (!synced) fail(Exit::io, "cannot write '{}': its directory: {}", path, std::strerror(reason));
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".part") {
  descriptor_ = base::open_new_file(temporary_);
  if (descriptor_ < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void OutputFile::write(const std::string& text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write_at(std::int64_t offset, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put =
        ::pwrite(descriptor_, text.data() + done, text.size() - done, offset + static_cast<std::int64_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
    done += static_cast<std::size_t>(put);
  }
}

void OutputFile::commit() {
  if (!base::sync_file(descriptor_)) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
  ::close(std::exchange(descriptor_, -1));
  sync_directory_of(path_);
}

void put_in_place(const std::string& temporary, const std::string& path) {
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const bool synced = descriptor >= 0 && base::sync_file(descriptor);
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) fail(Exit::io, "cannot write '{}': {}", path, std::strerror(reason));
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail(Exit::io, "cannot write '{}': {}", path, std::strerror(errno));
  sync_directory_of(path);
}

std::string read_text(const std::string& path, std::int64_t most_bytes) {
  const InputFile file(path);
  if (file.bytes() > most_bytes) {
    fail(Exit::bad_data, "'{}' has {} bytes, more than the {} such a file may have; is it the right file?", path,
         file.bytes(), most_bytes);
  }
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(Exit::io, "cannot make the directory '{}': {}", path, error.message());
}

}  // namespace orthant::data::io
