#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/tensor/box.hpp"

#include <memory>
#include <span>
#include <string>

namespace orthant::data::formats {

/// A volume that is written to a file box by box.
struct VolumeExtents {
  arrays::NumberType type = arrays::NumberType::f32;
  tensor::Shape shape;       ///< n = 1
  int spatial_count = 3;     ///< 2: the file has no depth
  bool has_channels = true;  ///< false: c = 1 and the file has no dim for it
};

/// A file that appears under its name only once it is complete.
class VolumeFile {
 public:
  VolumeFile() = default;
  VolumeFile(const VolumeFile&) = delete;
  VolumeFile& operator=(const VolumeFile&) = delete;
  virtual ~VolumeFile() = default;

  /// Writes the numbers of a box, channels-last.
  virtual void write(const tensor::Box& box, std::span<const std::byte> numbers) = 0;
  virtual void commit() = 0;
};

/// HDF5 with the data set `prediction`, D x H x W x C; boxes are written straight to the file.
std::unique_ptr<VolumeFile> make_hdf5_volume(const std::string& path, const VolumeExtents& extents);
/// NIfTI, packed if the path ends in .gz; channels are the fourth dim. Kept in memory until commit().
std::unique_ptr<VolumeFile> make_nifti_volume(const std::string& path, const VolumeExtents& extents);

}  // namespace orthant::data::formats
