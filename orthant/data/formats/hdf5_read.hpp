#pragma once

#include "orthant/data/arrays/axes.hpp"
#include "orthant/data/formats/hdf5_outline.hpp"
#include "orthant/data/io/file.hpp"

#include <span>

namespace orthant::data::formats {

/// An array of an HDF5 file as a tensor. Boxes are read from the file's bytes alone: the library is not called, so any
/// number of threads may read.
class Hdf5Reader {
 public:
  Hdf5Reader(const Hdf5Outline& outline, const Hdf5Array& array, arrays::Axes axes);

  /// n is the number of samples.
  [[nodiscard]] const tensor::Shape& shape() const { return shape_; }
  /// "a.h5:full".
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Reads `box`, dense and channels-last; returns the number of bytes read from the file. Throws Error with the
  /// position of a number that is not finite.
  // NOLINTNEXTLINE(modernize-use-nodiscard): few count
  std::int64_t read(const tensor::Box& box, std::span<float> into) const;
  /// The same for class indices; throws Error with the position of one outside [0, classes).
  // NOLINTNEXTLINE(modernize-use-nodiscard): few count
  std::int64_t read_labels(const tensor::Box& box, std::int64_t classes, std::span<std::int32_t> into) const;

 private:
  template <class Convert>
  std::int64_t read_with(const tensor::Box& box, Convert convert) const;
  template <class Convert>
  std::int64_t read_chunks(const io::InputFile& file, const tensor::Box& box, Convert convert) const;

  const Hdf5Outline& outline_;
  const Hdf5Array& array_;
  arrays::Axes axes_;
  tensor::Shape shape_;
  tensor::Layout layout_;
  std::string name_;
};

/// The array of that name; throws Error with the nearest name if there is none, or with the reason if it is refused.
const Hdf5Array& array_named(const Hdf5Outline& outline, const std::string& name);

}  // namespace orthant::data::formats
