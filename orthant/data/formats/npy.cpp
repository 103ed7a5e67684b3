#include "orthant/data/formats/npy.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/arrays/convert_box.hpp"
#include "orthant/data/arrays/file_fetch.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;

constexpr std::array<unsigned char, 6> magic{0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::int64_t most_header_bytes = 1 << 20;

struct HeaderText {
  std::string text;
  std::int64_t data_begin = 0;
};

HeaderText read_header(const io::InputFile& file) {
  std::array<std::uint8_t, 12> start{};
  if (file.bytes() < 12)
    fail(Exit::bad_data, "'{}' is not an npy file: it has only {} bytes", file.path(), file.bytes());
  file.read(0, std::as_writable_bytes(std::span(start)));
  if (!std::equal(magic.begin(), magic.end(), start.begin())) {
    fail(Exit::bad_data, "'{}' is not an npy file: it does not start with \\x93NUMPY", file.path());
  }
  const int version = start[6];
  if (version < 1 || version > 3)
    fail(Exit::bad_data, "'{}' has npy version {}; versions 1 to 3 are supported", file.path(), version);
  std::int64_t begin = 10;
  std::int64_t length = start[8] | start[9] << 8;
  if (version > 1) {
    begin = 12;
    length |= static_cast<std::int64_t>(start[10]) << 16 | static_cast<std::int64_t>(start[11]) << 24;
  }
  if (length > most_header_bytes || begin + length > file.bytes()) {
    fail(Exit::bad_data, "'{}' is not a readable npy file: its header claims {} bytes", file.path(), length);
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(begin, std::as_writable_bytes(std::span(text)));
  return {.text = std::move(text), .data_begin = begin + length};
}

/// The number of items; throws Error if the size of the file is not what the header says.
std::int64_t check_size(const NpyHeader& header, const io::InputFile& file, std::int64_t data_begin) {
  std::int64_t items = 1;
  bool overflow = false;
  for (const std::int64_t extent : header.extents) overflow = overflow || __builtin_mul_overflow(items, extent, &items);
  std::int64_t bytes = 0;
  overflow = overflow || __builtin_mul_overflow(items, bytes_of(header.type), &bytes);
  const std::int64_t there = file.bytes() - data_begin;
  if (overflow || bytes > there) {
    fail(Exit::bad_data, "'{}' is truncated: shape {} of {} needs {} bytes after the header, the file has {}",
         file.path(), extents_text(header.extents), name_of(header.type),
         overflow ? "more than 2^63" : std::to_string(bytes), there);
  }
  if (bytes < there) {
    fail(Exit::bad_data, "'{}' has {} bytes after its array of shape {}; is it two files in one?", file.path(),
         there - bytes, extents_text(header.extents));
  }
  return items;
}

}  // namespace

std::string extents_text(const std::vector<std::int64_t>& extents) {
  return extents.empty() ? "()" : fmt::format("{}", fmt::join(extents, "x"));
}

NpyFile::NpyFile(const std::string& path) : file_(path) {
  const HeaderText header = read_header(file_);
  header_ = parse_npy_header(header.text, path);
  data_begin_ = header.data_begin;
  items_ = check_size(header_, file_, data_begin_);
  const auto wide = std::count_if(extents().begin(), extents().end(), [](std::int64_t extent) { return extent > 1; });
  if (header_.fortran_order && wide > 1) {
    fail(Exit::bad_data, "'{}' is in Fortran order; save it with numpy.ascontiguousarray", path);
  }
}

std::int64_t NpyFile::read(const tensor::Layout& layout, const tensor::Box& box, std::span<float> into) const {
  assert(static_cast<std::int64_t>(into.size()) == tensor::volume(box));
  arrays::FileFetch fetch(file_, data_begin_);
  const auto bad = arrays::convert_box({.type = header_.type, .layout = layout}, box, std::ref(fetch),
                                       tensor::channels_last(tensor::extents_of(box)), into.data());
  if (bad) arrays::fail_not_finite({path(), extents()}, layout, *bad);
  return fetch.bytes();
}

std::int64_t NpyFile::read_labels(const tensor::Layout& layout, const tensor::Box& box, std::int64_t classes,
                                  std::span<std::int32_t> into) const {
  assert(static_cast<std::int64_t>(into.size()) == tensor::volume(box));
  if (!arrays::is_integer(header_.type)) {
    fail(Exit::bad_data, "'{}' has {} numbers, but labels must be integers; save it with astype('int64')", path(),
         name_of(header_.type));
  }
  arrays::FileFetch fetch(file_, data_begin_);
  const auto bad = arrays::convert_labels({.type = header_.type, .layout = layout}, box, std::ref(fetch),
                                          tensor::channels_last(tensor::extents_of(box)), into.data(), classes);
  if (bad) arrays::fail_no_class({path(), extents()}, layout, *bad, classes);
  return fetch.bytes();
}

void write_npy(const std::string& path, const std::vector<std::int64_t>& extents, std::span<const float> items) {
  std::string shape;
  for (const std::int64_t extent : extents) shape += fmt::format("{}, ", extent);
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string start(magic.begin(), magic.end());
  start += {'\1', '\0', static_cast<char>(header.size() & 255U), static_cast<char>(header.size() >> 8U)};

  io::OutputFile file(path);
  file.write(start + header);
  file.write(std::as_bytes(items));
  file.commit();
}

}  // namespace orthant::data::formats
