#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/onnx/file.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace orthant::model::onnx {

using Extents = std::vector<std::int64_t>;

/// A tensor that is known when the file is read: numbers, or a view of one of the file's tensors that nobody has read
/// yet.
struct Constant {
  ItemType type = ItemType::undefined;
  Extents extents;
  std::shared_ptr<const std::vector<double>> numbers;  ///< in row-major order; null for a view
  const Tensor* tensor = nullptr;                      ///< of which it is a view; the importer's file holds it
  std::string alias;                                   ///< its name, if it is not the tensor's
  bool is_node = false;     ///< the tensor is a node's attribute, so it is nobody's parameter
  std::int64_t offset = 0;  ///< of the first item in the tensor, in items
  Extents strides;
  std::string computed_from;  ///< a parameter whose values went into the numbers
};

/// A part of an axis of a model tensor: index = (index / step) % extent. Extents are at least 2.
struct Atom {
  tensor::Dim axis = tensor::Dim::n;
  std::int64_t extent = 1, step = 1;
  bool operator==(const Atom&) const = default;
};

/// The parts of axes that one dim of an ONNX tensor runs over, the slowest first. None: its extent is 1.
using Atoms = std::vector<Atom>;

/// A tensor of the network as ONNX sees it: the result of an item, its axes split, permuted and joined.
struct View {
  int item = 0;
  std::vector<Atoms> dims;
  bool operator==(const View&) const = default;
};

/// What comes out of something that is not supported. What reads it is not looked at.
struct Unknown {
  int item = 0;
};

using Value = std::variant<Constant, View, Unknown>;

/// What ONNX computes and the model has no op for: part of a pattern, or not supported.
struct Symbol {
  std::string op;
  double number = 0;                                           ///< what is added (add), an exponent (pow), ...
  std::vector<tensor::Dim> axes{};                             ///< of a mean, sum or maximum
  std::string trouble{};                                       ///< why it is not supported, and what to do
  tensor::Extent3 lo = tensor::cube(0), hi = tensor::cube(0);  ///< of a padding
  bool operator==(const Symbol&) const = default;
};

/// A parameter's values.
struct Binding {
  Parameter::Role role = Parameter::Role::weight;
  Constant constant;  ///< in the order of the model's parameter
  bool trainable = true;
};

/// One op between ONNX and the model's graph.
struct Item {
  std::variant<Op, Symbol> op;
  std::vector<int> srcs;
  tensor::Shape shape;
  std::string node;  ///< the name of the ONNX node
  std::string onnx_op;
  std::vector<Binding> bindings{};
};

}  // namespace orthant::model::onnx
