#pragma once

#include "orthant/data/tools/file_report.hpp"

namespace orthant::data::tools {

/// What is wrong with a set of files beside each file's own problems.
struct SetOptions {
  std::int64_t classes = 0;  ///< of labels; 0: not known
};

/// Adds to each report what differs from the first readable file (keys, types, shapes) and labels that are no class:
/// those of arrays named segmentation, label or labels.
void check_set(std::vector<FileReport>& reports, const SetOptions& options);

/// Compares files with the checksums in `.checksums` beside them, where there is such a file; returns how many were
/// compared.
std::int64_t check_checksums(std::vector<FileReport>& reports);
/// Writes `.checksums` beside the files: a CRC-32C and a name on each line.
void write_checksums(const std::vector<FileReport>& reports);

}  // namespace orthant::data::tools
