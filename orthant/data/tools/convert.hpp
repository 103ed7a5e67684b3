#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace orthant::data::tools {

/// Files to be converted to HDF5, with one sample per file: `full` and `unitPar` for targets that are values, `volume`
/// and `segmentation` for labels. Volumes have the axes d, h, w, c.
struct Conversion {
  std::vector<std::string> sources;  ///< NIfTI, npy or TFRecord, all of one kind
  std::vector<std::string> labels;   ///< one for each source, of the same kind
  std::vector<std::string> targets;  ///< npy with values, one for each source
  std::string directory;
  bool overwrite = false;
};

/// Writes the samples as `<source>.h5` or `<source>-<number>.h5`, each complete or not at all, and calls `done` after
/// each source. Returns the number of samples. Throws Error before the first is written if the lists do not match.
std::int64_t convert_files(const Conversion& conversion, const std::function<void(std::int64_t done)>& done = {});

}  // namespace orthant::data::tools
