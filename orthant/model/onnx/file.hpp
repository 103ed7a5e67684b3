#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace orthant::model::onnx {

/// The numbers that ONNX gives to types of items. Those that are not listed are not supported.
enum class ItemType : int {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};

/// Bytes of an item; 0 for types that are not supported.
std::int64_t bytes_of(ItemType type);

/// Where a tensor's bytes are: in a file, so that no large tensor is ever read as a whole, or here.
struct Bytes {
  std::string path;      ///< of the file that is opened; empty if the bytes are in `text`
  std::string external;  ///< a file beside it, named by it: opened without following links; empty for `path` itself
  std::int64_t offset = 0, size = 0;
  std::string text;
};

/// Items in row-major order, little-endian.
struct Tensor {
  std::string name;
  ItemType type = ItemType::undefined;
  std::vector<std::int64_t> extents;
  Bytes bytes;
};

struct Subgraph;

struct Attribute {
  double f = 0;
  std::int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::optional<Tensor> tensor;
  std::shared_ptr<const Subgraph> graph;
  std::string reference;  ///< in functions: the caller's attribute of this name
};

struct OpNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;
};

/// An input, an output or a value in between, as the file declares it.
struct Declared {
  std::string name;
  ItemType type = ItemType::undefined;
  std::optional<std::vector<std::int64_t>> extents;  ///< -1 where an extent is open
};

struct Subgraph {
  std::vector<OpNode> nodes;
  std::vector<Tensor> initializers;
  std::vector<Declared> inputs, outputs, values;
};

/// An op that the file makes of others.
struct Function {
  std::vector<std::string> inputs, outputs;
  std::vector<OpNode> nodes;
};

/// An ONNX file without the bytes of its large tensors.
struct ModelFile {
  std::string path;
  std::int64_t opset = 0;
  std::string producer;
  Subgraph graph;
  std::map<std::pair<std::string, std::string>, Function> functions;  ///< by domain and name
};

/// Reads and checks a file; nothing is read that the file only refers to. Throws Error: missing (66), unreadable (74),
/// malformed, cut, nested too deeply, or with tensors whose bytes are not where they should be (65).
ModelFile read_model(const std::string& path);

/// The items as floats or integers; `into` must have their number.
void read_items(const Tensor& tensor, std::vector<double>& into);
/// The items from `first` on.
void read_items(const Tensor& tensor, std::int64_t first, std::vector<float>& into);

/// Product of the extents; throws Error on overflow or if one is negative.
std::int64_t item_count(const std::vector<std::int64_t>& extents);

}  // namespace orthant::model::onnx
