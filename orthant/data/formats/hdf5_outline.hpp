#pragma once

#include "orthant/base/error.hpp"
#include "orthant/base/json_fwd.hpp"
#include "orthant/data/arrays/number.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// A chunk of an array in its file. A chunk of no bytes was never written and has the fill value.
struct Hdf5Chunk {
  std::int64_t offset = 0, bytes = 0;
  std::uint32_t skipped_filters = 0;  ///< bit i: filter i was not applied

  bool operator==(const Hdf5Chunk&) const = default;
};

/// The filters that can be undone; arrays with others are refused.
enum class Hdf5Filter { deflate = 1, shuffle = 2, fletcher32 = 3 };
const char* name_of(Hdf5Filter filter);

/// One array of a file: all that is needed to read any box of it without the library.
struct Hdf5Array {
  std::string name;     ///< "full", "group/full"
  std::string refused;  ///< why it cannot be read ("a virtual data set"); empty if it can
  arrays::NumberType type = arrays::NumberType::f32;
  bool big_endian = false;
  std::vector<std::int64_t> extents;
  std::int64_t offset = 0;          ///< of the data in the file, if it is contiguous
  std::string inside;               ///< the data itself, if it is stored in the metadata
  std::vector<std::int64_t> chunk;  ///< extents of a chunk; empty if not chunked
  std::vector<Hdf5Filter> filters;  ///< in the order in which they were applied
  std::vector<Hdf5Chunk> chunks;    ///< in row-major order of the grid of chunks
  std::string fill;                 ///< the bytes of one item

  bool operator==(const Hdf5Array&) const = default;
};

/// Where the arrays of an HDF5 file are, or why it cannot be read.
struct Hdf5Outline {
  std::string path;
  base::Exit code = base::Exit::done;
  std::string error;
  std::int64_t bytes = 0;  ///< of the file
  std::vector<Hdf5Array> arrays;

  bool operator==(const Hdf5Outline&) const = default;
};

/// How many chunks of an array were never written, as a sentence for the user; empty if none.
std::string gaps_of(const Hdf5Outline& outline, const Hdf5Array& array);

base::Json to_json(const Hdf5Outline& outline);
Hdf5Outline outline_from_json(const base::Json& json);

}  // namespace orthant::data::formats
