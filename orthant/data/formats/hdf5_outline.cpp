#include "orthant/data/formats/hdf5_outline.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"

#include <algorithm>
#include <charconv>

namespace orthant::data::formats {
namespace {

using base::Json;

std::string to_hex(const std::string& bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4U];
    text += digits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    int byte = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

Json to_json(const Hdf5Array& array) {
  Json filters = Json::array();
  for (const Hdf5Filter filter : array.filters) filters.push_back(static_cast<int>(filter));
  Json chunks = Json::array();
  for (const Hdf5Chunk& chunk : array.chunks)
    chunks.insert(chunks.end(), {chunk.offset, chunk.bytes, chunk.skipped_filters});
  return {{"name", array.name},
          {"refused", array.refused},
          {"type", static_cast<int>(array.type)},
          {"big_endian", array.big_endian},
          {"extents", array.extents},
          {"offset", array.offset},
          {"inside", to_hex(array.inside)},
          {"chunk", array.chunk},
          {"filters", filters},
          {"chunks", chunks},
          {"fill", to_hex(array.fill)}};
}

Hdf5Array array_from_json(const Json& json) {
  Hdf5Array array;
  array.name = json.at("name");
  array.refused = json.at("refused");
  array.type = static_cast<arrays::NumberType>(json.at("type").get<int>());
  array.big_endian = json.at("big_endian");
  array.extents = json.at("extents").get<std::vector<std::int64_t>>();
  array.offset = json.at("offset");
  array.inside = from_hex(json.at("inside"));
  array.chunk = json.at("chunk").get<std::vector<std::int64_t>>();
  for (const Json& filter : json.at("filters")) array.filters.push_back(static_cast<Hdf5Filter>(filter.get<int>()));
  const Json& chunks = json.at("chunks");
  for (std::size_t i = 0; i + 2 < chunks.size(); i += 3) {
    array.chunks.push_back({.offset = chunks[i].get<std::int64_t>(),
                            .bytes = chunks[i + 1].get<std::int64_t>(),
                            .skipped_filters = chunks[i + 2].get<std::uint32_t>()});
  }
  array.fill = from_hex(json.at("fill"));
  return array;
}

}  // namespace

const char* name_of(Hdf5Filter filter) {
  switch (filter) {
    case Hdf5Filter::deflate: return "gzip";
    case Hdf5Filter::shuffle: return "shuffle";
    case Hdf5Filter::fletcher32: break;
  }
  return "fletcher32";
}

Json to_json(const Hdf5Outline& outline) {
  Json arrays = Json::array();
  for (const Hdf5Array& array : outline.arrays) arrays.push_back(to_json(array));
  return {{"path", outline.path},
          {"code", static_cast<int>(outline.code)},
          {"error", outline.error},
          {"bytes", outline.bytes},
          {"arrays", arrays}};
}

Hdf5Outline outline_from_json(const Json& json) {
  Hdf5Outline outline{.path = json.at("path"),
                      .code = static_cast<base::Exit>(json.at("code").get<int>()),
                      .error = json.at("error"),
                      .bytes = json.at("bytes"),
                      .arrays = {}};
  for (const Json& array : json.at("arrays")) outline.arrays.push_back(array_from_json(array));
  return outline;
}

std::string gaps_of(const Hdf5Outline& outline, const Hdf5Array& array) {
  const auto missing =
      std::count_if(array.chunks.begin(), array.chunks.end(), [](const auto& c) { return c.bytes == 0; });
  if (missing == 0) return "";
  return fmt::format(
      "'{}:{}' has {} of {} chunks that were never written and read as its fill value; was its writer "
      "interrupted?",
      outline.path, array.name, missing, array.chunks.size());
}

}  // namespace orthant::data::formats
