#include "orthant/model/onnx/names.hpp"

#include "orthant/model/onnx/constant.hpp"

#include <algorithm>
#include <vector>

namespace orthant::model::onnx {
namespace {

constexpr std::size_t longest = 160;

/// Only what a layer's name may have.
std::string allowed(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    name += good ? c : '_';
  }
  if (name.size() > longest) name = name.substr(name.size() - longest);
  return name;
}

std::string without(const std::string& text, const char* ending) {
  return text.ends_with(ending) ? text.substr(0, text.size() - std::string(ending).size()) : text;
}

}  // namespace

std::string module_path(const std::string& node) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  while (first <= node.size()) {
    const std::size_t slash = std::min(node.find('/', first), node.size());
    std::string part = node.substr(first, slash - first);
    first = slash + 1;
    if (part.empty()) continue;
    // A child of a sequence or list has the name of its parent in front.
    if (!parts.empty() && part.starts_with(parts.back() + ".")) parts.pop_back();
    parts.push_back(std::move(part));
  }
  if (parts.size() > 1) parts.pop_back();
  std::string path;
  for (const std::string& part : parts) path += (path.empty() ? "" : ".") + part;
  return path;
}

const char* Names::suffix(Parameter::Role role) {
  switch (role) {
    case Parameter::Role::weight:
    case Parameter::Role::norm_weight: return ".weight";
    case Parameter::Role::bias:
    case Parameter::Role::norm_bias: return ".bias";
    case Parameter::Role::running_mean: return ".running_mean";
    case Parameter::Role::running_var: return ".running_var";
  }
  return "";
}

std::string Names::of(const Item& item) {
  std::string name;
  for (const Binding& binding : item.bindings) {
    if (is_parameter(binding.constant) && name.empty()) name = without(name_of(binding.constant), suffix(binding.role));
  }
  if (name.empty()) name = module_path(item.node);
  if (name.empty()) name = item.onnx_op;
  name = allowed(name);
  if (name.empty()) name = "layer";
  std::string unique = name;
  for (int i = 2; !given_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  last_ = unique;
  return unique;
}

}  // namespace orthant::model::onnx
