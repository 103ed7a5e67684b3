#include "orthant/data/formats/tfrecord.hpp"

#include "orthant/base/random.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/data/io/gzip_file.hpp"
#include "tests/data/temporary.hpp"

#include <cstring>

namespace orthant {
namespace {

using base::Exit;

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value > 127; value >>= 7U) text += static_cast<char>(value | 128U);
  return text + static_cast<char>(value);
}

/// A field of wire type 2.
std::string field(std::uint64_t number, const std::string& bytes) {
  return varint(number << 3U | 2U) + varint(bytes.size()) + bytes;
}

std::string feature(const std::string& name, std::uint64_t kind, const std::string& value) {
  return field(1, field(1, name) + field(2, field(kind, field(1, value))));
}

std::string masked_crc(const std::string& bytes) {
  const std::uint32_t sum = data::io::crc32c(std::as_bytes(std::span(bytes)));
  return raw((sum >> 15U | sum << 17U) + 0xA282EAD8U);
}

std::string record(const std::string& example) {
  const std::string length = raw(static_cast<std::uint64_t>(example.size()));
  return length + masked_crc(length) + example + masked_crc(example);
}

/// Counts 0, 1, 2, ... in a cube of four channels.
std::string counts(std::int16_t size) {
  std::string x;
  for (std::int16_t i = 0; i < size * size * size * 4; ++i) x += raw(i);
  return x;
}

const std::string four_floats = raw(0.5F) + raw(-1.0F) + raw(0.25F) + raw(3.0F);

TEST(TfRecord, ReadsSamplesOfCosmoflow) {
  const test::TemporaryDirectory folder;
  const std::string first = record(field(1, feature("y", 2, four_floats) + feature("x", 1, counts(2))));
  const std::string second =
      record(field(1, feature("other", 3, varint(7)) + feature("x", 1, counts(3)) + feature("y", 1, four_floats)));
  const std::string both = first + second;
  for (const std::string& path : {folder.write("a", both), folder.write("b", data::io::gzip(both))}) {
    const std::vector<data::formats::CosmoflowRecord> records = data::formats::read_tfrecord(path);

    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].size, 2);
    EXPECT_EQ(records[1].size, 3);
    EXPECT_EQ(records[1].x.size(), 108U);
    EXPECT_EQ(records[1].x[77], 77);
    for (const data::formats::CosmoflowRecord& one : records)
      EXPECT_EQ(one.y, (std::vector<float>{0.5F, -1, 0.25F, 3}));
  }
}

TEST(TfRecord, ReadsFloatsThatAreNotPacked) {
  const test::TemporaryDirectory folder;
  std::string list;
  for (int i = 0; i < 4; ++i) list += varint(1U << 3U | 5U) + raw(static_cast<float>(i));
  const std::string y = field(1, field(1, std::string("y")) + field(2, field(2, list)));

  EXPECT_EQ(data::formats::read_tfrecord(folder.write("a", record(field(1, feature("x", 1, counts(2)) + y)))).front().y,
            (std::vector<float>{0, 1, 2, 3}));
}

TEST(TfRecord, RefusesWhatIsNone) {
  const test::TemporaryDirectory folder;
  const auto refuse = [&](const std::string& message, const std::string& bytes) {
    test::expect_error(Exit::bad_data, message, [&] { data::formats::read_tfrecord(folder.write("bad", bytes)); });
  };
  const std::string x = feature("x", 1, counts(2));
  const std::string y = feature("y", 2, four_floats);
  const std::string good = record(field(1, x + y));
  std::string flipped = good;
  flipped[100] ^= 1;
  std::string huge = good;
  huge[7] = '\x7F';

  refuse("has no records", "");
  refuse("record 0: it is truncated", good.substr(0, 10));
  refuse("record 1: it is truncated", good + good.substr(0, good.size() - 1));
  refuse("record 0: its length is damaged", huge);
  refuse("record 0: its length is damaged", std::string(100, 'x'));
  refuse("record 0: its checksum is wrong", flipped);
  refuse("no feature 'x'", record(field(1, y)));
  refuse("no feature 'y'", record(field(1, x)));
  refuse("not a cube", record(field(1, feature("x", 1, counts(2).substr(8)) + y)));
  refuse("beyond its end", record("\x0A\x7F"));
  refuse("unknown kind", record("\x0B"));
  refuse("not finite", record(field(1, x + feature("y", 2, raw(std::numeric_limits<float>::quiet_NaN())))));
  refuse("too long", record("\x0A" + std::string(12, '\xFF')));
}

TEST(TfRecord, DamagedExamplesEndInAnErrorOrInNumbers) {
  const test::TemporaryDirectory folder;
  const std::string good = field(1, feature("x", 1, counts(2)) + feature("y", 2, four_floats));
  for (std::uint64_t key = 0; key < 500; ++key) {
    std::string bad = good;
    for (std::uint64_t i = 0; i < 2; ++i)
      bad[base::keyed(key, i) % bad.size()] = static_cast<char>(base::keyed(key, 10 + i));
    for (std::uint64_t i = 0; i < 2; ++i)
      bad[base::keyed(key, 20 + i) % 14] = static_cast<char>(base::keyed(key, 30 + i));
    try {
      data::formats::read_tfrecord(folder.write("bad", record(bad)));
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_data);
    }
  }
}

}  // namespace
}  // namespace orthant
