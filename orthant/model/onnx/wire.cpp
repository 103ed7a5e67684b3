#include "orthant/model/onnx/wire.hpp"

#include <cstring>

namespace orthant::model::onnx::wire {
namespace {

void put_tag(std::string& into, int field, unsigned type) {
  put_varint(into, static_cast<std::uint64_t>(field) << 3U | type);
}

/// What an AttributeProto says of its kind.
enum class Kind : std::int64_t { real = 1, integer = 2, text = 3, integers = 7 };

std::string attribute(std::string_view name, Kind kind, const std::string& value) {
  std::string bytes;
  put_bytes(bytes, 1, name);
  bytes += value;
  put_integer(bytes, 20, static_cast<std::int64_t>(kind));
  return bytes;
}

constexpr std::int64_t float_items = 1, integer_items = 7;

}  // namespace

void put_varint(std::string& into, std::uint64_t value) {
  while (value >= 128) {
    into += static_cast<char>((value & 127U) | 128U);
    value >>= 7U;
  }
  into += static_cast<char>(value);
}

void put_integer(std::string& into, int field, std::int64_t value) {
  put_tag(into, field, 0);
  put_varint(into, static_cast<std::uint64_t>(value));
}

void put_float(std::string& into, int field, float value) {
  put_tag(into, field, 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  into.append(bytes, sizeof bytes);
}

void put_length(std::string& into, int field, std::uint64_t bytes) {
  put_tag(into, field, 2);
  put_varint(into, bytes);
}

void put_bytes(std::string& into, int field, std::string_view bytes) {
  put_length(into, field, bytes.size());
  into += bytes;
}

std::string attribute(std::string_view name, std::int64_t value) {
  std::string bytes;
  put_integer(bytes, 3, value);
  return attribute(name, Kind::integer, bytes);
}

std::string attribute(std::string_view name, double value) {
  std::string bytes;
  put_float(bytes, 2, static_cast<float>(value));
  return attribute(name, Kind::real, bytes);
}

std::string attribute(std::string_view name, std::string_view value) {
  std::string bytes;
  put_bytes(bytes, 4, value);
  return attribute(name, Kind::text, bytes);
}

std::string attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  std::string bytes;
  for (const std::int64_t value : values) put_integer(bytes, 8, value);
  return attribute(name, Kind::integers, bytes);
}

std::string message(const Node& node, std::string_view name) {
  std::string bytes;
  for (const std::string& input : node.inputs) put_bytes(bytes, 1, input);
  for (const std::string& output : node.outputs) put_bytes(bytes, 2, output);
  put_bytes(bytes, 3, name);
  put_bytes(bytes, 4, node.op);
  for (const std::string& one : node.attributes) put_bytes(bytes, 5, one);
  return bytes;
}

std::string tensor(std::string_view name, const std::vector<std::int64_t>& values) {
  std::string bytes;
  put_integer(bytes, 1, static_cast<std::int64_t>(values.size()));
  put_integer(bytes, 2, integer_items);
  put_bytes(bytes, 8, name);
  put_bytes(bytes, 9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)});
  return bytes;
}

std::string tensor(std::string_view name, const std::vector<std::int64_t>& extents, const std::vector<float>& values) {
  std::string bytes = tensor_head(name, extents, values.size() * sizeof(float));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

std::string tensor_head(std::string_view name, const std::vector<std::int64_t>& extents, std::uint64_t size) {
  std::string bytes;
  for (const std::int64_t extent : extents) put_integer(bytes, 1, extent);
  put_integer(bytes, 2, float_items);
  put_bytes(bytes, 8, name);
  put_length(bytes, 9, size);
  return bytes;
}

std::string value(std::string_view name, const std::vector<std::int64_t>& extents) {
  std::string shape;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::string dim;
    i == 0 ? put_bytes(dim, 2, "samples") : put_integer(dim, 1, extents[i]);
    put_bytes(shape, 1, dim);
  }
  std::string type;
  put_integer(type, 1, float_items);
  put_bytes(type, 2, shape);
  std::string whole;
  put_bytes(whole, 1, type);
  std::string bytes;
  put_bytes(bytes, 1, name);
  put_bytes(bytes, 2, whole);
  return bytes;
}

}  // namespace orthant::model::onnx::wire
