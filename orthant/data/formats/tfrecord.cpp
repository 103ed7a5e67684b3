#include "orthant/data/formats/tfrecord.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/data/io/gzip_file.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

namespace orthant::data::formats {
namespace {

using base::Exit;
using Bytes = std::span<const std::byte>;

constexpr std::size_t head_bytes = 12, tail_bytes = 4;
constexpr std::uint64_t most_record_bytes = std::uint64_t{1} << 34U;

template <class T>
T number_at(Bytes bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::uint32_t masked(std::uint32_t sum) { return (sum >> 15U | sum << 17U) + 0xA282EAD8U; }

/// Why a record is malformed; caught where the number of the record is known.
struct Malformed {
  const char* why;
};

/// One field of a protobuf message: its number and, for wire types 2, 1 and 5, its bytes.
struct Field {
  std::uint64_t number = 0;
  Bytes bytes;
};

/// Walks the fields of a protobuf message, never beyond its end.
class Message {
 public:
  explicit Message(Bytes bytes) : rest_(bytes) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t key = varint();
    Field field{.number = key >> 3U, .bytes = {}};
    switch (key & 7U) {
      case 0: varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.bytes = take(4); break;
      default: throw Malformed{"it has a field of an unknown kind"};
    }
    return field;
  }

 private:
  Bytes take(std::uint64_t count) {
    if (count > rest_.size()) throw Malformed{"a field goes beyond its end"};
    const Bytes taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1)[0]);
      value |= (byte & 127U) << shift;
      if ((byte & 128U) == 0) return value;
    }
    throw Malformed{"a number is too long"};
  }

  Bytes rest_;
};

/// The bytes of all fields with that number, concatenated.
void for_each_field(Bytes bytes, std::uint64_t number, const std::function<void(Bytes)>& visit) {
  Message message(bytes);
  while (const std::optional<Field> field = message.next()) {
    if (field->number == number) visit(field->bytes);
  }
}

/// The raw bytes of a Feature: of a bytes_list (1) its value, of a float_list (2) its floats, packed or not.
std::vector<std::byte> feature_bytes(Bytes feature) {
  std::vector<std::byte> all;
  for (const std::uint64_t kind : {1U, 2U}) {
    for_each_field(feature, kind, [&](Bytes list) {
      for_each_field(list, 1, [&](Bytes value) { all.insert(all.end(), value.begin(), value.end()); });
    });
  }
  return all;
}

/// tf.Example{features = 1 {map feature = 1 {key = 1, value = 2}}}.
std::vector<std::byte> feature_named(Bytes example, const std::string& name) {
  std::vector<std::byte> found;
  for_each_field(example, 1, [&](Bytes features) {
    for_each_field(features, 1, [&](Bytes entry) {
      std::string key;
      for_each_field(entry, 1,
                     [&](Bytes text) { key.assign(reinterpret_cast<const char*>(text.data()), text.size()); });
      if (key == name) for_each_field(entry, 2, [&](Bytes feature) { found = feature_bytes(feature); });
    });
  });
  return found;
}

CosmoflowRecord parse(Bytes example, std::int64_t channels) {
  const std::vector<std::byte> x = feature_named(example, "x");
  const std::vector<std::byte> y = feature_named(example, "y");
  if (x.empty() || x.size() % 2 != 0) throw Malformed{"it has no feature 'x' of 16-bit numbers"};
  if (y.empty() || y.size() % 4 != 0) throw Malformed{"it has no feature 'y' of floats"};
  CosmoflowRecord record{.channels = channels};
  const auto pixels = static_cast<std::int64_t>(x.size() / 2) / channels;
  record.size = std::llround(std::cbrt(static_cast<double>(pixels)));
  if (record.size * record.size * record.size * channels != static_cast<std::int64_t>(x.size() / 2))
    throw Malformed{"its feature 'x' is not a cube of four channels"};
  record.x.resize(x.size() / 2);
  std::memcpy(record.x.data(), x.data(), x.size());
  record.y.resize(y.size() / 4);
  std::memcpy(record.y.data(), y.data(), y.size());
  for (const float value : record.y) {
    if (!std::isfinite(value)) throw Malformed{"a value of 'y' is not finite"};
  }
  return record;
}

/// The bytes of the next record; removes it from `rest`.
Bytes next_record(Bytes& rest) {
  if (rest.size() < head_bytes + tail_bytes) throw Malformed{"it is truncated"};
  if (number_at<std::uint32_t>(rest, 8) != masked(io::crc32c(rest.first(8)))) throw Malformed{"its length is damaged"};
  const auto length = number_at<std::uint64_t>(rest, 0);
  if (length > rest.size() - head_bytes - tail_bytes) throw Malformed{"it is truncated"};
  const Bytes data = rest.subspan(head_bytes, static_cast<std::size_t>(length));
  rest = rest.subspan(head_bytes + static_cast<std::size_t>(length));
  if (number_at<std::uint32_t>(rest, 0) != masked(io::crc32c(data))) throw Malformed{"its checksum is wrong"};
  rest = rest.subspan(tail_bytes);
  return data;
}

/// Asks for one record after the other, each as long as its head says.
class NextRecord {
 public:
  std::size_t operator()(Bytes so_far) {
    while (true) {
      if (so_far.size() < begin_ + head_bytes) return begin_ + head_bytes;
      const Bytes head = so_far.subspan(begin_, head_bytes);
      const auto length = number_at<std::uint64_t>(head, 0);
      const bool is_damaged = number_at<std::uint32_t>(head, 8) != masked(io::crc32c(head.first(8)));
      if (is_damaged || length > most_record_bytes) return so_far.size();
      const std::size_t end = begin_ + head_bytes + static_cast<std::size_t>(length) + tail_bytes;
      if (so_far.size() < end) return end;
      begin_ = end;
    }
  }

 private:
  std::size_t begin_ = 0;
};

}  // namespace

std::vector<CosmoflowRecord> read_tfrecord(const std::string& path, std::int64_t channels) {
  const std::vector<std::byte> bytes = io::read_unpacked(path, NextRecord());
  std::vector<CosmoflowRecord> records;
  Bytes rest = bytes;
  try {
    while (!rest.empty()) records.push_back(parse(next_record(rest), channels));
  } catch (const Malformed& malformed) {
    base::fail(Exit::bad_data, "'{}' is not a readable TFRecord of CosmoFlow: record {}: {}", path, records.size(),
               malformed.why);
  }
  if (records.empty()) base::fail(Exit::bad_data, "'{}' has no records", path);
  return records;
}

}  // namespace orthant::data::formats
