#pragma once

#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/settings.hpp"

#include <string>

namespace orthant::model::onnx {

/// Where a graph is to be made from the items of an importer.
struct Wanted {
  std::string name;       ///< of the network
  int output = 0;         ///< an item
  int spatial_count = 2;  ///< of the graph
  tensor::Shape sample;   ///< the network's source with n = mini-batch
  Loss loss;
  bool random_weights = false;
};

/// Makes a graph of those items that the output depends on. Throws Error with all that is not supported among them.
Graph build(const ModelFile& file, const Importer& importer, const Wanted& wanted);

}  // namespace orthant::model::onnx
