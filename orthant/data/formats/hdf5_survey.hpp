#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"

namespace orthant::data::formats {

/// Makes the outlines of HDF5 files in a child process, so that a file that crashes the library ends only the child.
/// Throws Error for the first file that cannot be read.
std::vector<Hdf5Outline> survey_hdf5(const std::vector<std::string>& paths);

/// The same, except that the error of each file is in its outline.
std::vector<Hdf5Outline> try_survey_hdf5(const std::vector<std::string>& paths);

/// Outlines as text, to be sent to other ranks.
std::string outlines_text(const std::vector<Hdf5Outline>& outlines);
std::vector<Hdf5Outline> outlines_from_text(const std::string& text);

}  // namespace orthant::data::formats
