#pragma once

#include "orthant/train/data_options.hpp"

namespace orthant::train {

/// Which samples a run is validated with, and when. Nothing by default.
struct ValidationOptions {
  double fraction = 0;                       ///< of the data, set aside
  std::vector<std::string> files;            ///< hdf5: instead of a fraction
  std::vector<std::string> inputs, targets;  ///< npy: instead of a fraction
  std::int64_t every = 0;                    ///< steps; 0: after every epoch

  [[nodiscard]] bool has_files() const { return !files.empty() || !inputs.empty(); }
  [[nodiscard]] bool any() const { return fraction > 0 || has_files(); }
  bool operator==(const ValidationOptions&) const = default;
};

/// Reads the value of a run's key `validation`; a single number is its fraction. `data` is what the run trains on.
ValidationOptions read_validation(const model::Document& value, const std::string& origin, const DataOptions& data);

/// The validation files, read as `data` says.
DataOptions validation_data(const ValidationOptions& validation, DataOptions data);

}  // namespace orthant::train
