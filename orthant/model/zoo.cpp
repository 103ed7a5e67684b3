#include "orthant/model/zoo.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/zoo/network.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

const std::vector<zoo::Network>& networks() {
  static const std::vector<zoo::Network> all{
      zoo::cosmoflow(), zoo::cosmoflow_mlperf(), zoo::unet3d(), zoo::resnet18(), zoo::resnet50(),
      zoo::resnet152(), zoo::wide_resnet50(),    zoo::vgg16(),  zoo::alexnet()};
  return all;
}

std::vector<ZooEntry> entries() {
  std::vector<ZooEntry> all;
  for (const zoo::Network& network : networks()) all.push_back(network.entry);
  return all;
}

}  // namespace

std::span<const ZooEntry> zoo_entries() {
  static const std::vector<ZooEntry> all = entries();
  return all;
}

const ZooEntry* find_in_zoo(std::string_view name) {
  const auto found = std::find_if(zoo_entries().begin(), zoo_entries().end(),
                                  [&](const ZooEntry& entry) { return entry.name == name; });
  return found == zoo_entries().end() ? nullptr : &*found;
}

Graph make_zoo(std::string_view name, const ZooOptions& options) {
  std::vector<std::string> known;
  for (const zoo::Network& network : networks()) {
    if (network.entry.name == name) return network.make(options.input, zoo::Settings(network.entry, options.settings));
    known.push_back(network.entry.name);
  }
  base::fail(base::Exit::usage, "no network '{}'{}", name, base::suggestion(name, known));
}

}  // namespace orthant::model
