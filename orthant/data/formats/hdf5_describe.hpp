#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"

namespace orthant::data::formats {

/// Makes the outline of an HDF5 file with the library, which may crash on a damaged file, so call it in child processes
/// only. Errors are reported in the outline; nothing is thrown.
Hdf5Outline describe_hdf5(const std::string& path);

}  // namespace orthant::data::formats
