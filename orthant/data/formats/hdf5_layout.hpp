#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"

#include <hdf5.h>

namespace orthant::data::formats {

/// Describes an open data set in a file of `file_bytes` bytes; `refused` says why it cannot be read, if so.
Hdf5Array describe_array(hid_t dataset, const std::string& name, std::int64_t file_bytes);

}  // namespace orthant::data::formats
