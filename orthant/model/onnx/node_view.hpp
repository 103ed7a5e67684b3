#pragma once

#include "orthant/model/onnx/file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::model::onnx {

/// An attribute with its default.
std::int64_t integer_of(const OpNode& node, const std::string& key, std::int64_t fallback);
double number_of(const OpNode& node, const std::string& key, double fallback);
std::string text_of(const OpNode& node, const std::string& key, const std::string& fallback);
/// Empty if it is not there.
std::vector<std::int64_t> list_of(const OpNode& node, const std::string& key);
std::vector<float> list_of_floats(const OpNode& node, const std::string& key);
bool has(const OpNode& node, const std::string& key);

}  // namespace orthant::model::onnx
