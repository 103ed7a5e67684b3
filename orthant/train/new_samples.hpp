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
  /// Throws Error if files are missing, of several kinds, or of none that is read.
  explicit NewSamples(const std::vector<std::string>& words);

  /// What is to be known of the files before they are opened, as text: one rank finds it out for all.
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
