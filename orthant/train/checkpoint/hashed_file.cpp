#include "orthant/train/checkpoint/hashed_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/data/io/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace orthant::train::checkpoint {
namespace {

using base::Exit;
using base::fail;

/// Reads a file block by block and calls visit(number of the block, its checksum).
template <class Visit>
void for_each_block(const data::io::InputFile& file, Visit visit) {
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(file.bytes(), File::block_bytes)));
  for (std::int64_t at = 0; at < file.bytes(); at += File::block_bytes) {
    const auto count = static_cast<std::size_t>(std::min(File::block_bytes, file.bytes() - at));
    const std::span<std::byte> bytes = std::span(block).first(count);
    file.read(at, bytes);
    visit(static_cast<std::size_t>(at / File::block_bytes), data::io::crc32c(bytes));
  }
}

}  // namespace

HashedFile::HashedFile(const std::string& directory, const std::string& name) : path_(directory + "/" + name) {
  file_.name = name;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
}

HashedFile::~HashedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void HashedFile::write(std::span<const std::byte> bytes) {
  for (std::span<const std::byte> rest = bytes; !rest.empty();) {
    const ssize_t put = ::write(descriptor_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
    rest = rest.subspan(static_cast<std::size_t>(put));
  }
  while (!bytes.empty()) {
    const std::int64_t room = File::block_bytes - file_.bytes % File::block_bytes;
    const auto some = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(room)));
    block_ = data::io::crc32c(some, block_);
    file_.bytes += static_cast<std::int64_t>(some.size());
    if (file_.bytes % File::block_bytes == 0) file_.blocks.push_back(std::exchange(block_, 0));
    bytes = bytes.subspan(some.size());
  }
}

File HashedFile::finish() {
  if (file_.bytes % File::block_bytes != 0) file_.blocks.push_back(block_);
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
  }
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
  return file_;
}

File hash_file(const std::string& directory, const std::string& name) {
  const data::io::InputFile input(directory + "/" + name);
  File file{.name = name, .bytes = input.bytes(), .blocks = {}};
  for_each_block(input, [&](std::size_t /*block*/, std::uint32_t sum) { file.blocks.push_back(sum); });
  return file;
}

void verify_file(const std::string& directory, const File& file) {
  const data::io::InputFile input(directory + "/" + file.name);
  if (input.bytes() != file.bytes)
    fail(Exit::bad_data, "'{}' has {} bytes where {} are expected", input.path(), input.bytes(), file.bytes);
  for_each_block(input, [&](std::size_t block, std::uint32_t sum) {
    if (sum == file.blocks.at(block)) return;
    const std::int64_t begin = static_cast<std::int64_t>(block) * File::block_bytes;
    fail(Exit::bad_data, "'{}' is damaged: bytes {} to {} have the checksum {:08x}, but {:08x} is expected",
         input.path(), begin, std::min(begin + File::block_bytes, file.bytes) - 1, sum, file.blocks.at(block));
  });
}

}  // namespace orthant::train::checkpoint
