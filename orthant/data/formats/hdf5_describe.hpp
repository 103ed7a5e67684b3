#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"

namespace orthant::data::formats {

/// The outline of an HDF5 file, made with the library, which a damaged file may crash: for child processes. What is
/// wrong is in the outline, nothing is thrown.
Hdf5Outline describe_hdf5(const std::string& path);

}  // namespace orthant::data::formats
