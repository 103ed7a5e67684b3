#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orthant::data::io {

/// A regular file open for reading.
class InputFile {
 public:
  /// Throws Error if the file is missing (66) or is no regular readable file (74).
  explicit InputFile(std::string path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Fills `into` from `offset` on; throws Error (74) if the file ends before.
  void read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

/// A file that appears under its name only once it is complete: commit() syncs it and renames it into place.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was written if it was not committed.
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void write(const std::string& text);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Syncs a finished file and renames it: from then on it is there under `path`, or it was never there.
void put_in_place(const std::string& temporary, const std::string& path);

/// The whole of a small text file; refuses more than `most_bytes`.
std::string read_text(const std::string& path, std::int64_t most_bytes = 64 << 20);
/// Atomically.
void write_text(const std::string& path, const std::string& text);

/// Makes a directory and those above it; one that is there is as good. Throws Error (io).
void make_directories(const std::string& path);

}  // namespace orthant::data::io
