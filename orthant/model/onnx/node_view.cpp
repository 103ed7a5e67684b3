#include "orthant/model/onnx/node_view.hpp"

namespace orthant::model::onnx {
namespace {

const Attribute* find(const OpNode& node, const std::string& key) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? nullptr : &found->second;
}

}  // namespace

std::int64_t integer_of(const OpNode& node, const std::string& key, std::int64_t fallback) {
  const Attribute* attribute = find(node, key);
  return attribute == nullptr ? fallback : attribute->i;
}

double number_of(const OpNode& node, const std::string& key, double fallback) {
  const Attribute* attribute = find(node, key);
  return attribute == nullptr ? fallback : attribute->f;
}

std::string text_of(const OpNode& node, const std::string& key, const std::string& fallback) {
  const Attribute* attribute = find(node, key);
  return attribute == nullptr ? fallback : attribute->s;
}

std::vector<std::int64_t> list_of(const OpNode& node, const std::string& key) {
  const Attribute* attribute = find(node, key);
  return attribute == nullptr ? std::vector<std::int64_t>() : attribute->ints;
}

std::vector<float> list_of_floats(const OpNode& node, const std::string& key) {
  const Attribute* attribute = find(node, key);
  return attribute == nullptr ? std::vector<float>() : attribute->floats;
}

bool has(const OpNode& node, const std::string& key) { return find(node, key) != nullptr; }

}  // namespace orthant::model::onnx
