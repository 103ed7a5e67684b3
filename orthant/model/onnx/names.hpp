#pragma once

#include "orthant/model/onnx/value.hpp"

#include <set>
#include <string>

namespace orthant::model::onnx {

/// Gives items the names of layers: those of their weights without ".weight", else the path of modules in the node's
/// name, which PyTorch's exporters write there.
class Names {
 public:
  /// A new name, which no other item has.
  std::string of(const Item& item);
  /// The last one that was given.
  [[nodiscard]] const std::string& last() const { return last_; }
  /// ".weight", ".bias", ...
  static const char* suffix(Parameter::Role role);

 private:
  std::set<std::string> given_{"input"};
  std::string last_;
};

/// "/layer1/layer1.0/conv1/Conv" is "layer1.0.conv1".
std::string module_path(const std::string& node);

}  // namespace orthant::model::onnx
