#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/onnx/wire.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace orthant::model::onnx {

/// Nodes and constants that compute what a graph computes in evaluation.
class Emitter {
 public:
  explicit Emitter(const Graph& graph);

  /// NodeProto and TensorProto messages.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<std::string>& constants() const { return constants_; }
  /// Extents of the output; the first is that of samples.
  [[nodiscard]] std::vector<std::int64_t> output_extents() const;

 private:
  friend struct OpEmitter;
  struct Tensor {
    std::string name;
    bool vector = false;  ///< samples and channels only
  };

  /// One node with one result, whose name comes back.
  std::string put(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> attributes = {});
  std::string constant(const std::vector<std::int64_t>& values);
  std::string constant(const std::vector<std::int64_t>& extents, const std::vector<float>& values);
  std::string number(double value) { return constant({}, {static_cast<float>(value)}); }
  std::string fresh(const std::string& wish);
  /// A parameter of the node that is written, with these extents.
  std::string parameter(Parameter::Role role, const std::vector<std::int64_t>& extents);
  /// The first source, or source `index`, with all its dims, or with two.
  std::string spatial(std::size_t index = 0);
  std::string vector(std::size_t index = 0);
  /// Extents of a tensor of the network with `samples` in front.
  [[nodiscard]] std::vector<std::int64_t> extents(const tensor::Shape& shape, std::int64_t samples) const;
  /// c, 1, 1, ...: what goes with channels. For vectors only c.
  [[nodiscard]] std::vector<std::int64_t> channel_extents(bool vector) const;
  std::vector<std::int64_t> space(const tensor::Extent3& extent) const;

  const Graph& graph_;
  const model::Node* node_ = nullptr;
  int index_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::string> nodes_, constants_;
  std::set<std::string> taken_;
};

}  // namespace orthant::model::onnx
