#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orthant::base {

/// A regular file open for reading.
class InputFile {
 public:
  /// Throws Error if the file is missing (66) or is not a regular file that can be read (74).
  explicit InputFile(std::string path);
  /// Takes an open descriptor, which it closes; `path` is for messages.
  InputFile(int descriptor, std::string path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Fills `into` from `offset` on; throws Error (74) if the file ends earlier.
  void read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  /// Closes the descriptor and throws Error (74) unless it is a regular file's.
  void adopt();
  std::string path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace orthant::base
