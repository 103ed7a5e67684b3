#pragma once

#include "orthant/data/arrays/number.hpp"

#include <array>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// A volume of a NIfTI-1 file. The extents begin with the slowest dim: d, h, w (z, y, x in the file), preceded by the
/// fourth dim c if the file has one.
struct Nifti {
  arrays::NumberType type = arrays::NumberType::f32;
  std::vector<std::int64_t> extents;
  double slope = 1, intercept = 0;        ///< value = slope * number + intercept
  std::array<float, 3> spacing{1, 1, 1};  ///< of d, h, w
  std::vector<std::byte> numbers;         ///< little-endian

  [[nodiscard]] bool is_scaled() const { return slope != 1 || intercept != 0; }
};

/// Reads .nii and .nii.gz. Throws Error unless it is a NIfTI-1 file of at most four dims.
Nifti read_nifti(const std::string& path);
/// Writes atomically; packed if the path ends in .gz.
void write_nifti(const std::string& path, const Nifti& image);

/// The numbers as floats, scaled. Throws Error where one is not finite.
std::vector<float> nifti_values(const Nifti& image, const std::string& path);

}  // namespace orthant::data::formats
