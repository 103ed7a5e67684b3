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
  std::string note;     ///< why it cannot be read as an array of numbers
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

/// The file name endings of the supported formats.
const std::vector<std::string>& data_endings();

/// Inspects HDF5, npy, NIfTI and TFRecord files, which it tells apart by the endings of their names (HDF5 if unknown).
/// With `numbers` it also reads all numbers. Calls `done` after each file. Problems are reported, not thrown.
std::vector<FileReport> report_on(const std::vector<std::string>& paths, bool numbers,
                                  const std::function<void(std::int64_t done)>& done = {});

}  // namespace orthant::data::tools
