#include "orthant/model/zoo.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/zoo/network.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

const std::vector<ZooNetwork>& networks() {
  static const std::vector<ZooNetwork> all{cosmoflow(), cosmoflow_mlperf(), unet3d(), resnet18(), resnet50(),
                                           resnet152(), wide_resnet50(),    vgg16(),  alexnet()};
  return all;
}

std::vector<ZooEntry> entries() {
  std::vector<ZooEntry> all;
  for (const ZooNetwork& network : networks()) all.push_back(network.entry);
  return all;
}

}  // namespace

std::span<const ZooEntry> zoo() {
  static const std::vector<ZooEntry> all = entries();
  return all;
}

const ZooEntry* find_in_zoo(std::string_view name) {
  const auto found =
      std::find_if(zoo().begin(), zoo().end(), [&](const ZooEntry& entry) { return entry.name == name; });
  return found == zoo().end() ? nullptr : &*found;
}

Graph make_zoo(std::string_view name, const ZooOptions& options) {
  std::vector<std::string> known;
  for (const ZooNetwork& network : networks()) {
    if (network.entry.name == name) return network.make(options.input, Settings(network.entry, options.settings));
    known.push_back(network.entry.name);
  }
  base::fail(base::Exit::usage, "no network '{}'{}", name, base::suggestion(name, known));
}

}  // namespace orthant::model
