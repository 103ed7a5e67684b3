#pragma once

#include "orthant/model/network.hpp"

#include <string>

namespace orthant::model::onnx {

/// What a user may say of a network in an ONNX file.
struct Settings {
  std::string output;  ///< empty: the only one
  Loss loss;           ///< without terms: none was given
  bool random_weights = false;
};

/// Throws Error(usage) for settings that there are not.
Settings read_settings(const std::string& path, const SettingValues& values);

}  // namespace orthant::model::onnx
