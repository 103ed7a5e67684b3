#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/input_shape.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthant::model {

using SettingValues = std::map<std::string, std::string>;

/// What to build: the source's shape (n = mini-batch) and settings that differ from their defaults.
struct ZooOptions {
  tensor::Shape input;
  SettingValues settings = {};
};

/// One thing that can be set on a zoo network: `--set name=value`.
struct ZooSetting {
  std::string name;
  std::string value;  ///< the default
  std::string meaning;
};

struct ZooEntry {
  std::string name;
  std::string description;
  InputShape input;  ///< what the network was published with, n = 1
  std::vector<ZooSetting> settings;
};

/// All networks, in the order in which they are listed.
std::span<const ZooEntry> zoo_entries();
/// Null if there is none of that name.
const ZooEntry* find_in_zoo(std::string_view name);

/// Builds a network; throws Error for an unknown name or setting (naming the nearest), or an input that does not fit.
Graph make_zoo(std::string_view name, const ZooOptions& options);

}  // namespace orthant::model
