#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orthant::model::onnx::wire {

// Fields of protobuf messages, appended to a text.

void put_varint(std::string& into, std::uint64_t value);
void put_integer(std::string& into, int field, std::int64_t value);
void put_float(std::string& into, int field, float value);
/// A string or a message.
void put_bytes(std::string& into, int field, std::string_view bytes);
/// The tag and length of a field whose bytes follow.
void put_length(std::string& into, int field, std::uint64_t bytes);

// Messages of ONNX.

std::string attribute(std::string_view name, std::int64_t value);
std::string attribute(std::string_view name, double value);
std::string attribute(std::string_view name, std::string_view value);
std::string attribute(std::string_view name, const std::vector<std::int64_t>& values);

/// A node; attributes are messages.
struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs, attributes;
};
std::string message(const Node& node, std::string_view name);
std::string tensor(std::string_view name, const std::vector<std::int64_t>& values);
std::string tensor(std::string_view name, const std::vector<std::int64_t>& extents, const std::vector<float>& values);
/// A tensor of floats without its raw data, which follow, and have this many bytes.
std::string tensor_head(std::string_view name, const std::vector<std::int64_t>& extents, std::uint64_t bytes);
/// A tensor of floats as an input or output; the first extent is open.
std::string value(std::string_view name, const std::vector<std::int64_t>& extents);

}  // namespace orthant::model::onnx::wire
