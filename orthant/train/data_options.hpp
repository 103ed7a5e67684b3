#pragma once

#include "orthant/data/sets/hdf5_dataset.hpp"
#include "orthant/data/sets/orientation.hpp"
#include "orthant/data/sets/transform.hpp"
#include "orthant/model/document.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::train {

/// Where samples come from, and what is done to them.
struct DataOptions {
  enum class Kind { synthetic, npy, hdf5 };
  Kind kind = Kind::synthetic;
  std::int64_t samples = 64;                 ///< synthetic
  std::uint64_t seed = 1;                    ///< synthetic
  std::vector<std::string> inputs, targets;  ///< npy: paths or patterns
  std::vector<std::string> files;            ///< hdf5: paths, patterns, directories or lists
  data::sets::Hdf5Options hdf5;
  std::vector<data::sets::Transform> transforms;
  data::sets::Augmentation augment;
  bool shuffle = true;  ///< a new order every epoch
  enum class Store { automatic, memory, off };
  Store store = Store::automatic;  ///< automatic: in memory if the data are in files
  std::int64_t store_limit = 0;    ///< bytes per rank; 0: half of what is available
  bool operator==(const DataOptions&) const = default;
};

/// True if samples are to be kept in memory.
bool keeps_samples(const DataOptions& options);

/// Reads the value of a run's key `data`; `origin` names the run in messages.
DataOptions read_data(const model::Document& value, const std::string& origin);

}  // namespace orthant::train
