#pragma once

#include "orthant/data/arrays/number.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// A data set to be written. Without chunks it is contiguous and can be read at the speed of the disk.
struct Hdf5Extents {
  arrays::NumberType type = arrays::NumberType::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> chunk{};  ///< as many numbers as extents, or none
  int gzip = 0;                       ///< level 1 to 9, only with chunks
};

/// An HDF5 file that appears under its name only once it is complete: commit() syncs it and renames it into place.
/// The same contents give the same bytes. Not thread-safe, like the library.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string path);
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  /// Removes what was written if it was not committed.
  ~Hdf5Writer();

  void create(const std::string& name, const Hdf5Extents& extents);
  /// Fills a box of the data set with numbers of its type, in C order.
  void write(const std::string& name, std::span<const std::int64_t> begin, std::span<const std::int64_t> extents,
             std::span<const std::byte> numbers);
  /// The planes along the first dim that follow those written by append() so far.
  void append(const std::string& name, std::span<const std::byte> planes);

  /// Attributes of the data set or, if that is "", of the file.
  void attribute(const std::string& dataset, const std::string& name, const std::string& text);
  void attribute(const std::string& dataset, const std::string& name, std::span<const double> numbers);
  void attribute(const std::string& dataset, const std::string& name, std::int64_t number);

  void commit();

 private:
  struct State;
  std::string path_, temporary_;
  std::unique_ptr<State> state_;
};

}  // namespace orthant::data::formats
