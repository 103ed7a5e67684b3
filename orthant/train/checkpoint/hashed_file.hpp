#pragma once

#include "orthant/train/checkpoint/manifest.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace orthant::train::checkpoint {

/// A new file that is written from its beginning to its end, and its checksums.
class HashedFile {
 public:
  /// Throws Error if the file exists.
  HashedFile(const std::string& directory, const std::string& name);
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;
  ~HashedFile();

  void write(std::span<const std::byte> bytes);
  [[nodiscard]] std::int64_t bytes() const { return file_.bytes; }
  /// Brings everything to the disk.
  File finish();

 private:
  std::string path_;
  int descriptor_ = -1;
  File file_;
  std::uint32_t block_ = 0;  ///< checksum of the block that is not complete
};

/// The checksums of a file that exists.
File hash_file(const std::string& directory, const std::string& name);
/// Throws Error if the file is missing, has another size, or a block with another checksum; it names the block.
void verify_file(const std::string& directory, const File& file);

}  // namespace orthant::train::checkpoint
