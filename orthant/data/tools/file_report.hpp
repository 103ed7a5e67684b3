#pragma once

#include "orthant/base/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace orthant::data::tools {

struct NumberSummary {
  double least = 0, most = 0, mean = 0;
};

/// What is known of an array in a file.
struct ArrayReport {
  std::string name;  ///< empty if the file has one array only
  std::string type;  ///< "int16"
  bool integers = false;
  std::vector<std::int64_t> extents;
  std::string storage;  ///< "contiguous", "chunks of 32x32x32x4, gzip"
  std::string note;     ///< why it is no array of numbers that can be read
  std::optional<NumberSummary> summary;
};

/// What is known of a file.
struct FileReport {
  std::string path;
  std::int64_t bytes = 0;
  std::vector<ArrayReport> arrays;
  base::Exit code = base::Exit::done;  ///< of the first problem
  std::vector<std::string> problems;
};

/// Endings of the files that can be reported on.
const std::vector<std::string>& data_endings();

/// Looks at HDF5, npy, NIfTI and TFRecord files, by their names' endings (HDF5 if unknown). With `numbers` it also
/// reads all of them, and calls `done` after each file. Problems are in the reports, nothing is thrown for them.
std::vector<FileReport> report_on(const std::vector<std::string>& paths, bool numbers,
                                  const std::function<void(std::int64_t done)>& done = {});

}  // namespace orthant::data::tools
