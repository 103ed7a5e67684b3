#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/zoo.hpp"

#include <string>

namespace orthant::model {

/// What a command line or run file says about a network, as it says it.
struct NetworkOptions {
  std::string input = {};  ///< "4x128x128x128"; empty for the network's own
  std::int64_t mini_batch = 1;
  SettingValues settings = {};
};

/// A zoo name, or a path that ends in .yaml, .yml or .onnx. Throws Error: unknown names (with the nearest), missing
/// files, files and inputs that make no network.
Graph load_network(const std::string& name_or_path, const NetworkOptions& options);

/// Of the settings of a network file: the output that was asked for, or nothing. Throws Error(usage) for any other
/// setting.
std::string chosen_output(const std::string& path, const SettingValues& settings);

/// Splits "key=value" of `--set`; throws Error(usage).
void add_setting(SettingValues& settings, const std::string& key_and_value);

}  // namespace orthant::model
