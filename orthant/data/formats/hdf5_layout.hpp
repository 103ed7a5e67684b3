#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"

#include <hdf5.h>

namespace orthant::data::formats {

/// What the library knows of an open data set in a file of so many bytes; `refused` says why it is not one of ours.
Hdf5Array describe_array(hid_t dataset, const std::string& name, std::int64_t file_bytes);

}  // namespace orthant::data::formats
