#pragma once

#include "orthant/data/formats/hdf5_outline.hpp"
#include "orthant/data/io/file.hpp"

#include <span>
#include <vector>

namespace orthant::data::formats {

/// Reads chunks of an array and undoes its filters.
class Hdf5Unpacker {
 public:
  /// `name` is how error messages call the array.
  Hdf5Unpacker(const io::InputFile& file, const Hdf5Array& array, const std::string& name);

  /// The items of the chunk as they were before the filters, valid until the next call. Throws Error if it is damaged.
  std::span<const std::byte> unpack(const Hdf5Chunk& chunk);

 private:
  void inflate(std::size_t most_bytes, const Hdf5Chunk& chunk);
  void unshuffle();
  void check_sum(const Hdf5Chunk& chunk);
  [[noreturn]] void refuse(const Hdf5Chunk& chunk, const char* why) const;

  const io::InputFile& file_;
  const Hdf5Array& array_;
  const std::string& name_;
  std::size_t chunk_bytes_;
  std::vector<std::byte> bytes_, scratch_;
};

/// The checksum of HDF5's fletcher32 filter.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

}  // namespace orthant::data::formats
