#include "orthant/data/formats/nifti.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/io/gzip_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;

constexpr std::size_t header_bytes = 348;
constexpr std::size_t data_begin = 352;

/// The offsets of fields in the header (nifti1.h).
enum Field : std::size_t {
  sizeof_hdr = 0,
  dim = 40,
  datatype = 70,
  bitpix = 72,
  pixdim = 76,
  vox_offset = 108,
  scl_slope = 112,
  scl_inter = 116,
  xyzt_units = 123,
  sform_code = 254,
  srow = 280,
  magic = 344,
};

const std::map<int, arrays::NumberType>& types() {
  static const std::map<int, arrays::NumberType> known{
      {2, arrays::NumberType::u8},    {4, arrays::NumberType::i16},   {8, arrays::NumberType::i32},
      {16, arrays::NumberType::f32},  {64, arrays::NumberType::f64},  {256, arrays::NumberType::i8},
      {512, arrays::NumberType::u16}, {768, arrays::NumberType::u32}, {1024, arrays::NumberType::i64}};
  return known;
}

/// Numbers of a header in either byte order.
class Header {
 public:
  Header(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes) {
    if (bytes.size() < data_begin)
      fail(Exit::bad_data, "'{}' is not a NIfTI file: it has only {} bytes", path, bytes.size());
    swapped_ = get<std::int32_t>(sizeof_hdr) != static_cast<std::int32_t>(header_bytes);
    if (get<std::int32_t>(sizeof_hdr) != static_cast<std::int32_t>(header_bytes) ||
        std::memcmp(bytes.data() + magic, "n+1", 4) != 0)
      fail(Exit::bad_data, "'{}' is not a single-file NIfTI-1 image (.nii): its header does not have its signature",
           path);
  }

  template <class T>
  [[nodiscard]] T get(std::size_t at) const {
    std::array<std::byte, sizeof(T)> bytes{};
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), sizeof(T), bytes.begin());
    if (swapped_) std::reverse(bytes.begin(), bytes.end());
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  [[nodiscard]] bool swapped() const { return swapped_; }

 private:
  std::span<const std::byte> bytes_;
  bool swapped_ = false;
};

std::vector<std::int64_t> read_extents(const Header& header, const std::string& path) {
  const int count = header.get<std::int16_t>(dim);
  std::vector<std::int64_t> extents;
  for (int i = 1; i <= std::clamp(count, 0, 7); ++i)
    extents.insert(extents.begin(), header.get<std::int16_t>(dim + 2 * static_cast<std::size_t>(i)));
  while (extents.size() > 3 && extents.front() == 1) extents.erase(extents.begin());
  const bool usable = std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent > 0; });
  if (count < 2 || count > 7 || !usable || extents.size() > 4)
    fail(Exit::bad_data, "'{}' has dims that are not those of a volume with channels", path);
  while (extents.size() < 3) extents.insert(extents.begin(), 1);
  return extents;
}

arrays::NumberType read_type(const Header& header, const std::string& path) {
  const int code = header.get<std::int16_t>(datatype);
  const auto found = types().find(code);
  if (found == types().end())
    fail(Exit::bad_data, "'{}' has numbers of NIfTI type {}, which is not supported", path, code);
  return found->second;
}

std::int64_t number_bytes(arrays::NumberType type, const std::vector<std::int64_t>& extents) {
  std::int64_t bytes = bytes_of(type);
  for (const std::int64_t extent : extents) bytes = base::checked_mul(bytes, extent);
  return bytes;
}

/// How long the file must be, as its header says; only the header where that makes no sense.
std::size_t promised_bytes(std::span<const std::byte> so_far, const std::string& path) {
  if (so_far.size() < data_begin) return data_begin;
  const Header header(so_far, path);
  const auto offset = header.get<float>(vox_offset);
  if (!(offset >= 0 && offset < 1e9F)) return data_begin;
  const std::int64_t bytes = number_bytes(read_type(header, path), read_extents(header, path));
  return static_cast<std::size_t>(base::checked_add(static_cast<std::int64_t>(offset), bytes));
}

/// The bytes of the numbers; throws Error if the file does not have what the header says.
std::span<const std::byte> numbers_of(const Header& header, const Nifti& image, std::span<const std::byte> bytes,
                                      const std::string& path) {
  const std::int64_t needed = number_bytes(image.type, image.extents);
  const auto offset = header.get<float>(vox_offset);
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (!(offset >= static_cast<float>(header_bytes)) || offset > static_cast<float>(size))
    fail(Exit::bad_data, "'{}' is damaged: its numbers begin at byte {}", path, offset);
  const auto begin = static_cast<std::int64_t>(offset);
  if (needed > size - begin) {
    fail(Exit::bad_data, "'{}' is truncated: its numbers need {} bytes from byte {} on, there are {}", path, needed,
         begin, size - begin);
  }
  return bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(needed));
}

template <class T>
void put(std::string& header, std::size_t at, T value) {
  std::memcpy(header.data() + at, &value, sizeof(T));
}

int type_code(arrays::NumberType type) {
  for (const auto& [code, known] : types()) {
    if (known == type) return code;
  }
  fail(Exit::internal, "NIfTI files of {} are not written; please report this", name_of(type));
}

std::string make_header(const Nifti& image) {
  std::string header(data_begin, '\0');
  put(header, sizeof_hdr, static_cast<std::int32_t>(header_bytes));
  put(header, dim, static_cast<std::int16_t>(image.extents.size()));
  put(header, pixdim, 1.0F);
  for (std::size_t i = 0; i < 7; ++i) {
    const bool there = i < image.extents.size();
    const std::int64_t extent = there ? image.extents[image.extents.size() - 1 - i] : 1;
    if (extent > 32767) fail(Exit::bad_data, "a NIfTI file cannot have an extent of {}; the most is 32767", extent);
    put(header, dim + 2 * (i + 1), static_cast<std::int16_t>(extent));
    put(header, pixdim + 4 * (i + 1), i < 3 ? image.spacing.at(2 - i) : 1.0F);
  }
  put(header, datatype, static_cast<std::int16_t>(type_code(image.type)));
  put(header, bitpix, static_cast<std::int16_t>(8 * bytes_of(image.type)));
  put(header, vox_offset, static_cast<float>(data_begin));
  put(header, scl_slope, static_cast<float>(image.slope));
  put(header, scl_inter, static_cast<float>(image.intercept));
  header[xyzt_units] = 2;  // millimetres
  put(header, sform_code, std::int16_t{1});
  for (std::size_t i = 0; i < 3; ++i) put(header, srow + 16 * i + 4 * i, image.spacing.at(2 - i));
  header.replace(magic, 3, "n+1");
  return header;
}

}  // namespace

Nifti read_nifti(const std::string& path) {
  const std::vector<std::byte> bytes =
      io::read_unpacked(path, [&](std::span<const std::byte> so_far) { return promised_bytes(so_far, path); });
  const Header header(bytes, path);
  Nifti image;
  image.extents = read_extents(header, path);
  image.type = read_type(header, path);
  const auto slope = header.get<float>(scl_slope);
  const auto intercept = header.get<float>(scl_inter);
  if (!std::isfinite(slope) || !std::isfinite(intercept))
    fail(Exit::bad_data, "'{}' is damaged: its scale is {} and its offset {}", path, slope, intercept);
  if (slope != 0) {  // zero means that the numbers are not scaled
    image.slope = slope;
    image.intercept = intercept;
  }
  for (std::size_t i = 0; i < 3; ++i) image.spacing.at(2 - i) = header.get<float>(pixdim + 4 * (i + 1));
  const auto numbers = numbers_of(header, image, bytes, path);
  image.numbers.assign(numbers.begin(), numbers.end());
  const auto size = static_cast<std::ptrdiff_t>(bytes_of(image.type));
  if (header.swapped()) {
    for (auto at = image.numbers.begin(); at != image.numbers.end(); at += size) std::reverse(at, at + size);
  }
  return image;
}

void write_nifti(const std::string& path, const Nifti& image) {
  std::string text = make_header(image);
  text.append(reinterpret_cast<const char*>(image.numbers.data()), image.numbers.size());
  io::write_text(path, path.ends_with(".gz") ? io::gzip(text) : text);
}

std::vector<float> nifti_values(const Nifti& image, const std::string& path) {
  std::vector<float> values(image.numbers.size() / static_cast<std::size_t>(bytes_of(image.type)));
  arrays::convert(image.type, image.numbers, values.data(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (image.is_scaled())
      values[i] = static_cast<float>(image.slope * static_cast<double>(values[i]) + image.intercept);
    if (!std::isfinite(values[i]))
      fail(Exit::bad_data, "'{}' holds {} as number {}; only finite numbers can be trained on", path, values[i], i);
  }
  return values;
}

}  // namespace orthant::data::formats
