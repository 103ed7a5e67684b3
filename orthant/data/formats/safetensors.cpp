#include "orthant/data/formats/safetensors.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/json.hpp"
#include "orthant/data/io/crc32c.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;
using base::Json;

constexpr std::int64_t most_header_bytes = 100'000'000;
constexpr const char* sums_key = "crc32c";
constexpr std::size_t digits = 8;
constexpr std::int64_t piece_items = 1 << 18;

std::string read_header(const io::InputFile& file) {
  std::uint64_t length = 0;
  if (file.bytes() < 8)
    fail(Exit::bad_data, "'{}' is not a safetensors file: it has only {} bytes", file.path(), file.bytes());
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > static_cast<std::uint64_t>(most_header_bytes)) {
    fail(Exit::bad_data, "'{}' is not a safetensors file: its header claims {} bytes, more than {}", file.path(),
         length, most_header_bytes);
  }
  if (length > static_cast<std::uint64_t>(file.bytes() - 8)) {
    fail(Exit::bad_data, "'{}' is truncated: its header claims {} bytes, the file has {}", file.path(), length,
         file.bytes());
  }
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)));
  if (text.empty() || text.front() != '{')
    fail(Exit::bad_data, "'{}' is not a safetensors file: its header does not start with '{{'", file.path());
  return text;
}

/// Turns one tensor's JSON into an entry; `where` names file and tensor in messages.
class EntryReader {
 public:
  EntryReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  [[nodiscard]] TensorEntry read() const {
    if (!json_.is_object() || json_.size() != 3) refuse("its entry must have dtype, shape and data_offsets");
    TensorEntry entry{.type = read_type(), .extents = read_numbers("shape")};
    const std::vector<std::int64_t> offsets = read_numbers("data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) refuse("data_offsets must be two ascending numbers");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    check_size(entry);
    return entry;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { fail(Exit::bad_data, "{}: {}", where_, why); }

  const Json& field(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(fmt::format("'{}' is missing", key));
    return *found;
  }

  [[nodiscard]] arrays::NumberType read_type() const {
    static const std::map<std::string, arrays::NumberType> types{{"F32", arrays::NumberType::f32},
                                                                 {"F64", arrays::NumberType::f64},
                                                                 {"F16", arrays::NumberType::f16},
                                                                 {"BF16", arrays::NumberType::bf16},
                                                                 {"I64", arrays::NumberType::i64}};
    const Json& type = field("dtype");
    const auto found = type.is_string() ? types.find(type.get<std::string>()) : types.end();
    if (found == types.end()) refuse(fmt::format("type {} is not supported; store F32, F64, F16 or BF16", type.dump()));
    return found->second;
  }

  std::vector<std::int64_t> read_numbers(const char* key) const {
    const Json& list = field(key);
    if (!list.is_array()) refuse(fmt::format("'{}' must be a list of numbers", key));
    std::vector<std::int64_t> numbers;
    for (const Json& item : list) {
      const bool usable = item.is_number_unsigned() &&
                          item.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      if (!usable) refuse(fmt::format("'{}' holds {}, which is not a size", key, item.dump()));
      numbers.push_back(item.get<std::int64_t>());
    }
    return numbers;
  }

  void check_size(const TensorEntry& entry) const {
    std::int64_t bytes = bytes_of(entry.type);
    bool overflow = false;
    for (const std::int64_t extent : entry.extents)
      overflow = overflow || __builtin_mul_overflow(bytes, extent, &bytes);
    if (overflow || bytes != entry.end - entry.begin) {
      refuse(fmt::format("its shape needs {} bytes, its data_offsets give {}",
                         overflow ? "more than 2^63" : std::to_string(bytes), entry.end - entry.begin));
    }
  }

  const Json& json_;
  std::string where_;
};

/// The format demands that tensors follow each other from byte 0 to the end of the file.
void check_cover(const std::map<std::string, TensorEntry>& tensors, std::int64_t bytes, const std::string& path) {
  std::vector<std::pair<std::string, TensorEntry>> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });
  std::int64_t at = 0;
  for (const auto& [name, entry] : sorted) {
    if (entry.end > bytes)
      fail(Exit::bad_data, "'{}': tensor '{}' ends at byte {} of {}; the file is truncated", path, name, entry.end,
           bytes);
    if (entry.begin < at) fail(Exit::bad_data, "'{}': tensor '{}' overlaps the one before it", path, name);
    if (entry.begin > at)
      fail(Exit::bad_data, "'{}': there is a hole of {} bytes before tensor '{}'", path, entry.begin - at, name);
    at = entry.end;
  }
  if (at != bytes) fail(Exit::bad_data, "'{}': {} bytes after the last tensor belong to no tensor", path, bytes - at);
}

/// The checksums in a file's metadata, if it has them.
void read_sums(const Json& metadata, std::map<std::string, TensorEntry>& tensors, const std::string& path) {
  const Json value = metadata.is_object() ? metadata.value(sums_key, Json()) : Json();
  if (!value.is_string()) return;
  const std::string text = value.get<std::string>();
  std::size_t at = 0;
  for (auto& [name, entry] : tensors) {
    std::uint32_t sum = 0;
    const char* end = text.data() + std::min(text.size(), at + digits);
    const auto [stop, error] = std::from_chars(text.data() + std::min(at, text.size()), end, sum, 16);
    if (error != std::errc() || stop != end || end != text.data() + at + digits)
      fail(Exit::bad_data, "'{}' is damaged: its checksums are not those of {} tensors", path, tensors.size());
    entry.crc32c = sum;
    at += digits;
  }
  if (at != text.size())
    fail(Exit::bad_data, "'{}' is damaged: its checksums are not those of {} tensors", path, tensors.size());
}

/// The checksums as the metadata has them; `sums` are in the order of the tensors.
std::string sums_text(const std::vector<TensorSource>& tensors, const std::vector<std::uint32_t>& sums) {
  std::map<std::string, std::uint32_t> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name[tensors[i].name] = sums[i];
  std::string text;
  for (const auto& [name, sum] : by_name) text += fmt::format("{:08x}", sum);
  return text;
}

std::string header_text(const std::vector<TensorSource>& tensors, std::map<std::string, std::string> metadata,
                        const std::vector<std::uint32_t>& sums) {
  Json header = Json::object();
  metadata[sums_key] = sums_text(tensors, sums);
  header["__metadata__"] = metadata;
  std::int64_t at = 0;
  for (const TensorSource& tensor : tensors) {
    std::int64_t items = 1;
    for (const std::int64_t extent : tensor.extents) items *= extent;
    const std::int64_t end = at + items * static_cast<std::int64_t>(sizeof(float));
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.extents}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const std::string text = read_header(file_);
  data_begin_ = 8 + static_cast<std::int64_t>(text.size());
  const Json header = base::parse_json(text, "'" + path + "' (safetensors header)");
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    tensors_[name] = EntryReader(json, fmt::format("'{}': tensor '{}'", path, name)).read();
  }
  check_cover(tensors_, file_.bytes() - data_begin_, path);
  read_sums(header.value("__metadata__", Json()), tensors_, path);
}

void SafetensorsFile::read(const std::string& name, std::span<float> into) const {
  const TensorEntry& entry = tensors_.at(name);
  const std::int64_t size = bytes_of(entry.type);
  const auto count = static_cast<std::int64_t>(into.size());
  assert(count * size == entry.end - entry.begin);
  std::vector<std::byte> piece;
  std::uint32_t sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += piece_items) {
    const std::int64_t some = std::min(piece_items, count - begin);
    piece.resize(static_cast<std::size_t>(some * size));
    file_.read(data_begin_ + entry.begin + begin * size, piece);
    arrays::convert(entry.type, piece, into.data() + begin, 1);
    if (entry.crc32c) sum = io::crc32c(piece, sum);
  }
  if (entry.crc32c && sum != *entry.crc32c)
    fail(Exit::bad_data, "'{}' is damaged: tensor '{}' has checksum {:08x}, but the file says {:08x}; use another copy",
         path(), name, sum, *entry.crc32c);
  const auto bad = std::find_if(into.begin(), into.end(), [](float value) { return !std::isfinite(value); });
  if (bad != into.end())
    fail(Exit::bad_data, "'{}': tensor '{}' holds {} at item {}; only finite numbers can be used", path(), name, *bad,
         bad - into.begin());
}

void write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::uint32_t> sums(tensors.size());
  const std::string header = header_text(tensors, metadata, sums);
  const std::uint64_t length = header.size();
  io::OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  std::vector<float> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSource& tensor = tensors[i];
    std::size_t count = 1;
    for (const std::int64_t extent : tensor.extents) count *= static_cast<std::size_t>(extent);
    items.resize(count);
    tensor.fill(items);
    sums[i] = io::crc32c(std::as_bytes(std::span(items)));
    file.write(std::as_bytes(std::span(items)));
  }
  // Of the same length as before.
  file.write_at(sizeof length, header_text(tensors, metadata, sums));
  file.commit();
}

}  // namespace orthant::data::formats
