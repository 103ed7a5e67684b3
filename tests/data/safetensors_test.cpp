#include "orthant/data/formats/safetensors.hpp"

#include "tests/data/temporary.hpp"

#include <cmath>
#include <cstring>

namespace orthant {
namespace {

using base::Exit;
using data::formats::SafetensorsFile;
using test::expect_error;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string safetensors(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

std::string entry(const std::string& name, const std::string& shape, int begin, int end,
                  const std::string& type = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string one(const std::string& text, std::size_t data_bytes) { return safetensors("{" + text + "}", data_bytes); }

data::formats::TensorSource constant(const std::string& name, const std::vector<std::int64_t>& extents, float value) {
  return {name, extents, [value](std::span<float> into) { std::fill(into.begin(), into.end(), value); }};
}

TEST(Safetensors, FindsAFlippedBitByTheChecksum) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("w");
  data::formats::write_safetensors(path, {constant("b", {2, 3}, 1.5F), constant("a", {4}, -2)});
  std::string bytes = data::io::read_text(path);
  bytes[bytes.size() - 2] ^= 1;
  folder.write("w", bytes);
  const SafetensorsFile file(path);
  std::vector<float> items(6);
  file.read("b", items);
  items.resize(4);
  expect_error(Exit::bad_data, "tensor 'a' has checksum", [&] { file.read("a", items); });
}

TEST(Safetensors, RefusesChecksumsOfAnotherFile) {
  const test::TemporaryDirectory folder;
  const std::string sums = R"("__metadata__":{"crc32c":"%"},)";
  for (const std::string text : {"0000000", "000000000", "0000000000000000", "0000000x", ""}) {
    std::string header = sums;
    header.replace(header.find('%'), 1, text);
    expect_error(Exit::bad_data, "checksums are not those of 1 tensors",
                 [&] { SafetensorsFile(folder.write("w", one(header + entry("a", "1", 0, 4), 4))); });
  }
}

/// Thousands of tensors took minutes when every one looked at all others.
TEST(Safetensors, ReadsManyTensors) {
  const test::TemporaryDirectory folder;
  std::string text;
  constexpr int many = 200'000;
  for (int i = 0; i < many; ++i) text += (i > 0 ? "," : "") + entry("t" + std::to_string(i), "0", 0, 0);
  EXPECT_EQ(SafetensorsFile(folder.write("w", one(text, 0))).tensors().size(), static_cast<std::size_t>(many));
}

TEST(Safetensors, ReadsWhatItWrote) {
  const test::TemporaryDirectory folder;
  data::formats::write_safetensors(
      folder.file("w"), {constant("b.weight", {2, 3}, 1.5F), constant("a.bias", {4}, -2), constant("s", {}, 7)},
      {{"format", "pt"}});

  const SafetensorsFile file(folder.file("w"));
  std::vector<float> items(6);
  file.read("b.weight", items);

  EXPECT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors().at("b.weight").extents, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(items, std::vector<float>(6, 1.5F));
  items.resize(1);
  file.read("s", items);
  EXPECT_EQ(items[0], 7);
}

TEST(Safetensors, AlignsItsHeader) {
  const test::TemporaryDirectory folder;
  data::formats::write_safetensors(folder.file("w"), {constant("a", {1}, 0)});

  const std::string bytes = data::io::read_text(folder.file("w"));

  EXPECT_EQ((bytes.size() - 4) % 8, 0U);
}

TEST(Safetensors, ConvertsOtherFloats) {
  const test::TemporaryDirectory folder;
  std::string bytes =
      one(entry("h", "1", 0, 2, "F16") + "," + entry("b", "1", 2, 4, "BF16") + "," + entry("d", "1", 4, 12, "F64"), 0);
  const double number = 0.25;
  bytes += std::string("\x00\x3C\x80\x3F", 4) + std::string(reinterpret_cast<const char*>(&number), 8);
  const SafetensorsFile file(folder.write("w", bytes));
  const auto read = [&](const char* name) {
    std::vector<float> item(1);
    file.read(name, item);
    return item[0];
  };

  EXPECT_EQ(read("h"), 1);
  EXPECT_EQ(read("b"), 1);
  EXPECT_EQ(read("d"), 0.25F);
}

TEST(Safetensors, RefusesMalformedFiles) {
  struct Case {
    std::string bytes, message;
  };
  const std::vector<Case> cases{
      {"", "only 0 bytes"},
      {"1234567", "only 7 bytes"},
      {with_length(100, "{}"), "is truncated: its header claims 100 bytes"},
      {with_length(200'000'000, "{}"), "more than 100000000"},
      {with_length(~std::uint64_t{0}, "{}"), "more than 100000000"},
      {with_length(0, ""), "does not start with '{'"},
      {safetensors("[1, 2]", 0), "does not start with '{'"},
      {std::string("\x93NUMPY\x01\x00v\x00{'descr'", 18), "more than 100000000"},
      {"PK\x03\x04 a zip file, as torch.save writes it", "more than 100000000"},
      {safetensors("{\"a\":", 0), "not JSON"},
      {safetensors("{\"a\":1}", 0), "must have dtype, shape and data_offsets"},
      {safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", 4), "'data_offsets' is missing"},
      {one(entry("a", "1", 0, 4) + "," + entry("a", "1", 4, 8), 8), "key 'a' appears twice"},
      {one(entry("a", "2", 0, 8) + "," + entry("b", "2", 4, 12), 12), "'b' overlaps"},
      {one(entry("a", "1", 0, 4) + "," + entry("b", "1", 8, 12), 12), "hole of 4 bytes before tensor 'b'"},
      {one(entry("a", "1", 4, 8), 8), "hole of 4 bytes before tensor 'a'"},
      {one(entry("a", "1", 0, 4), 8), "4 bytes after the last tensor"},
      {one(entry("a", "4", 0, 16), 8), "the file is truncated"},
      {one(entry("a", "3", 0, 8), 8), "needs 12 bytes, its data_offsets give 8"},
      {one(entry("a", "9223372036854775807, 9223372036854775807", 0, 8), 8), "more than 2^63"},
      {one(entry("a", "18446744073709551615", 0, 8), 8), "not a size"},
      {one(entry("a", "-2", 0, 8), 8), "not a size"},
      {one(entry("a", "2.0", 0, 8), 8), "not a size"},
      {one(entry("a", "2", 8, 0), 8), "two ascending numbers"},
      {one(entry("a", "2", 0, 8, "I8"), 8), "type \"I8\" is not supported"},
      {one(entry("a", "2", 0, 8, "f32"), 8), "type \"f32\" is not supported"},
      {one("\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,0]}", 0), "type 7 is not supported"},
      {one("\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}", 8), "'shape' must be a list"},
      {safetensors(std::string(200, '[').replace(0, 1, "{\"a\":") + "1", 0), "nested more than"},
  };
  const test::TemporaryDirectory folder;
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.message);
    expect_error(Exit::bad_data, bad.message, [&] { SafetensorsFile(folder.write("bad", bad.bytes)); });
  }
}

TEST(Safetensors, NamesThePlaceOfNumbersThatAreNotFinite) {
  const test::TemporaryDirectory folder;
  data::formats::write_safetensors(folder.file("w"), {{"a", {5}, [](std::span<float> into) { into[3] = INFINITY; }}});
  const SafetensorsFile file(folder.file("w"));
  std::vector<float> items(5);

  expect_error(Exit::bad_data, "tensor 'a' holds inf at item 3", [&] { file.read("a", items); });
}

}  // namespace
}  // namespace orthant
