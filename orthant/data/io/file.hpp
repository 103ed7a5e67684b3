#pragma once

#include "orthant/base/input_file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orthant::data::io {

using base::InputFile;

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
  /// Writes over what is there already.
  void write_at(std::int64_t offset, const std::string& text);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Syncs a finished file and renames it to `path`. A crash leaves either the whole file or none under that name.
void put_in_place(const std::string& temporary, const std::string& path);

/// Reads a small text file; throws Error if it has more than `most_bytes`.
std::string read_text(const std::string& path, std::int64_t most_bytes = 64 << 20);
/// Writes a text file atomically.
void write_text(const std::string& path, const std::string& text);

/// Makes a directory and its parents, unless they exist already. Throws Error (io).
void make_directories(const std::string& path);

}  // namespace orthant::data::io
