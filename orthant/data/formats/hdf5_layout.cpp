#include "orthant/data/formats/hdf5_layout.hpp"

#include "orthant/base/format.hpp"
#include "orthant/data/formats/hdf5_handle.hpp"

#include <algorithm>
#include <array>

namespace orthant::data::formats {
namespace {

constexpr std::int64_t most_chunk_bytes = std::int64_t{256} << 20;
/// The library needs time in proportion to the square of the number of chunks to list them.
constexpr std::int64_t most_chunks = 1 << 15;
/// Deflate cannot compress better: a file that claims more is damaged or malicious.
constexpr std::int64_t most_expansion = 1032;

/// Why an array is refused; caught in describe_array.
struct Refusal {
  std::string why;
};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{fmt::format(format, std::forward<Args>(args)...)};
}

const char* class_name(H5T_class_t kind) {
  switch (kind) {
    case H5T_TIME: return "times";
    case H5T_STRING: return "text";
    case H5T_BITFIELD: return "bit fields";
    case H5T_OPAQUE: return "opaque data";
    case H5T_COMPOUND: return "compound data";
    case H5T_REFERENCE: return "references";
    case H5T_ENUM: return "an enumeration";
    case H5T_VLEN: return "lists of varying length";
    case H5T_ARRAY: return "arrays as items";
    default: return "no numbers";
  }
}

arrays::NumberType integer_type(std::size_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? arrays::NumberType::i8 : arrays::NumberType::u8;
    case 2: return is_signed ? arrays::NumberType::i16 : arrays::NumberType::u16;
    case 4: return is_signed ? arrays::NumberType::i32 : arrays::NumberType::u32;
    case 8: return is_signed ? arrays::NumberType::i64 : arrays::NumberType::u64;
    default: refuse("integers of {} bytes", size);
  }
}

void read_type(hid_t type, Hdf5Array& array) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  array.big_endian = H5Tget_order(type) == H5T_ORDER_BE;
  if (kind == H5T_INTEGER) {
    if (H5Tget_precision(type) != 8 * size || H5Tget_offset(type) != 0) refuse("integers with padding bits");
    array.type = integer_type(size, H5Tget_sign(type) == H5T_SGN_2);
    return;
  }
  if (kind != H5T_FLOAT) refuse("{}", class_name(kind));
  if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0) {
    array.type = arrays::NumberType::f32;
  } else if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0) {
    array.type = arrays::NumberType::f64;
  } else if (size == 2 && H5Tget_ebias(type) == 15 && H5Tget_precision(type) == 16) {
    array.type = arrays::NumberType::f16;
  } else {
    refuse("floats that are not IEEE's");
  }
}

/// Bytes of the whole array.
std::int64_t read_extents(hid_t dataset, Hdf5Array& array) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  if (space.get() < 0) refuse("damaged (no data space)");
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind != H5S_SIMPLE && kind != H5S_SCALAR) refuse("empty");
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int count = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  if (count < 0) refuse("damaged (no extents)");
  std::int64_t bytes = bytes_of(array.type);
  for (int i = 0; i < count; ++i) {
    const auto extent = static_cast<std::int64_t>(extents[static_cast<std::size_t>(i)]);
    array.extents.push_back(extent);
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) refuse("of an absurd size");
  }
  return bytes;
}

void read_contiguous(hid_t dataset, std::int64_t bytes, std::int64_t file_bytes, Hdf5Array& array) {
  const haddr_t offset = H5Dget_offset(dataset);
  if (bytes == 0) return;
  if (offset == HADDR_UNDEF) refuse("never written");
  array.offset = static_cast<std::int64_t>(offset);
  if (array.offset < 0 || array.offset > file_bytes || bytes > file_bytes - array.offset)
    refuse("truncated: it needs {} bytes from byte {} on, the file has {}", bytes, array.offset, file_bytes);
}

void read_compact(hid_t dataset, hid_t type, std::int64_t bytes, Hdf5Array& array) {
  if (bytes > 1 << 16) refuse("damaged (too large to be stored in the metadata)");
  array.inside.assign(static_cast<std::size_t>(bytes), '\0');
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.inside.data()) < 0) refuse("damaged (unreadable)");
}

void read_filters(hid_t plan, Hdf5Array& array) {
  const int count = H5Pget_nfilters(plan);
  if (count < 0) refuse("damaged (no filters)");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::array<unsigned, 16> values{};
    std::size_t values_count = values.size();
    std::array<char, 64> name{};
    const H5Z_filter_t filter = H5Pget_filter2(plan, static_cast<unsigned>(i), &flags, &values_count, values.data(),
                                               name.size() - 1, name.data(), &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
      refuse("packed with the filter {} '{}'; only gzip, shuffle and fletcher32 are read", filter, name.data());
    array.filters.push_back(static_cast<Hdf5Filter>(filter));
  }
  if (std::count(array.filters.begin(), array.filters.end(), Hdf5Filter::deflate) > 1) refuse("packed twice with gzip");
}

/// Where each chunk is, in the order of the grid.
void find_chunks(hid_t dataset, std::int64_t chunk_bytes, std::int64_t file_bytes, Hdf5Array& array) {
  std::vector<std::int64_t> grid;
  std::int64_t cells = 1;
  for (std::size_t i = 0; i < array.chunk.size(); ++i) {
    grid.push_back((array.extents[i] + array.chunk[i] - 1) / array.chunk[i]);
    if (__builtin_mul_overflow(cells, grid.back(), &cells) || cells > most_chunks)
      refuse("cut into more than {} chunks; make them larger", most_chunks);
  }
  array.chunks.resize(static_cast<std::size_t>(cells));
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  hsize_t count = 0;
  if (H5Dget_num_chunks(dataset, space.get(), &count) < 0) refuse("damaged (its chunks cannot be listed)");
  for (hsize_t i = 0; i < count; ++i) {
    std::array<hsize_t, H5S_MAX_RANK> at{};
    unsigned mask = 0;
    haddr_t offset = 0;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info(dataset, space.get(), i, at.data(), &mask, &offset, &bytes) < 0)
      refuse("damaged (its chunks cannot be listed)");
    std::int64_t cell = 0;
    bool inside = true;
    for (std::size_t dim = 0; dim < grid.size(); ++dim) {
      const std::int64_t index = static_cast<std::int64_t>(at[dim]) / array.chunk[dim];
      inside = inside && index >= 0 && index < grid[dim];
      cell = cell * grid[dim] + index;
    }
    if (!inside) continue;
    const Hdf5Chunk chunk{static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes), mask};
    if (chunk.offset < 0 || chunk.bytes < 0 || chunk.offset > file_bytes || chunk.bytes > file_bytes - chunk.offset)
      refuse("truncated: a chunk of {} bytes at byte {}, the file has {}", chunk.bytes, chunk.offset, file_bytes);
    if (array.filters.empty() && chunk.bytes != chunk_bytes)
      refuse("damaged: a chunk of {} bytes where {} are needed", chunk.bytes, chunk_bytes);
    array.chunks[static_cast<std::size_t>(cell)] = chunk;
  }
}

void read_chunked(hid_t dataset, hid_t plan, std::int64_t bytes, std::int64_t file_bytes, Hdf5Array& array) {
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int count = H5Pget_chunk(plan, H5S_MAX_RANK, extents.data());
  if (count < 0 || static_cast<std::size_t>(count) != array.extents.size()) refuse("damaged (no chunk size)");
  std::int64_t chunk_bytes = bytes_of(array.type);
  for (int i = 0; i < count; ++i) {
    const auto extent = static_cast<std::int64_t>(extents[static_cast<std::size_t>(i)]);
    if (extent < 1 || __builtin_mul_overflow(chunk_bytes, extent, &chunk_bytes) || chunk_bytes > most_chunk_bytes)
      refuse("cut into chunks of more than 256 MiB");
    array.chunk.push_back(extent);
  }
  if (bytes / most_expansion > file_bytes)
    refuse("of {} bytes, more than {} times the file's size", bytes, most_expansion);
  read_filters(plan, array);
  if (bytes > 0) find_chunks(dataset, chunk_bytes, file_bytes, array);
}

void read_fill(hid_t plan, hid_t type, Hdf5Array& array) {
  array.fill.assign(static_cast<std::size_t>(bytes_of(array.type)), '\0');
  H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(plan, &state) >= 0 && state == H5D_FILL_VALUE_USER_DEFINED)
    H5Pget_fill_value(plan, type, array.fill.data());
}

void describe(hid_t dataset, std::int64_t file_bytes, Hdf5Array& array) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle plan(H5Dget_create_plist(dataset), H5Pclose);
  if (type.get() < 0 || plan.get() < 0) refuse("damaged (no type)");
  const H5D_layout_t layout = H5Pget_layout(plan.get());
  if (layout == H5D_VIRTUAL) refuse("a virtual data set");
  if (H5Pget_external_count(plan.get()) != 0) refuse("stored in another file (external storage)");
  read_type(type.get(), array);
  const std::int64_t bytes = read_extents(dataset, array);
  switch (layout) {
    case H5D_CONTIGUOUS: return read_contiguous(dataset, bytes, file_bytes, array);
    case H5D_COMPACT: return read_compact(dataset, type.get(), bytes, array);
    case H5D_CHUNKED: break;
    default: refuse("of an unknown layout");
  }
  read_chunked(dataset, plan.get(), bytes, file_bytes, array);
  read_fill(plan.get(), type.get(), array);
}

}  // namespace

Hdf5Array describe_array(hid_t dataset, const std::string& name, std::int64_t file_bytes) {
  Hdf5Array array{.name = name};
  try {
    describe(dataset, file_bytes, array);
  } catch (const Refusal& refusal) {
    array.refused = refusal.why;
  }
  return array;
}

}  // namespace orthant::data::formats
