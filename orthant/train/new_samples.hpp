#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/train/data_options.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orthant::train {

/// Samples without targets, named as in run files: HDF5 or npy.
class NewSamples {
 public:
  /// Throws Error if files are missing, are of different kinds, or are of a kind that cannot be read.
  explicit NewSamples(const std::vector<std::string>& words);

  /// Describes the files as text, which open() needs: one rank looks at them for all.
  [[nodiscard]] std::string survey() const;
  /// Opens them, read and transformed as `options` say; throws Error where they do not fit the network.
  [[nodiscard]] std::unique_ptr<data::sets::Dataset> open(const DataOptions& options,
                                                          const data::sets::SampleShape& shape,
                                                          const std::string& survey) const;

 private:
  std::vector<std::string> paths_;
  bool npy_ = false;
};

}  // namespace orthant::train
