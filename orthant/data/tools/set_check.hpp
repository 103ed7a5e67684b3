#pragma once

#include "orthant/data/tools/file_report.hpp"

#include <map>
#include <string>

namespace orthant::data::tools {

/// What is known about a set of files.
struct SetOptions {
  std::int64_t classes = 0;  ///< of labels; 0: not known
};

/// Adds to each report how the file differs from the first readable file (keys, types, shapes), and whether arrays
/// named segmentation, label or labels hold numbers that are not classes.
void check_set(std::vector<FileReport>& reports, const SetOptions& options);

/// The checksums of a `.checksums` file by file name; `path` names it in messages.
std::map<std::string, std::string> parse_checksums(const std::string& list, const std::string& path);

/// Compares files with the lists of checksums beside them; each list is read once.
class ChecksumLists {
 public:
  struct Comparison {
    bool compared = false;  ///< there is a checksum for the file
    std::string problem{};  ///< empty if all is well, or there is no list
  };
  Comparison compare(const std::string& path);

 private:
  std::map<std::string, std::map<std::string, std::string>> lists_;
};

/// Compares files with the checksums in `.checksums` beside them, where such a file exists; returns how many were
/// compared.
std::int64_t check_checksums(std::vector<FileReport>& reports);
/// Writes `.checksums` beside the files: a CRC-32C and a name on each line.
void write_checksums(const std::vector<FileReport>& reports);

}  // namespace orthant::data::tools
