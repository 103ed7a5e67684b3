#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/network.hpp"

#include <string>

namespace orthant::model::onnx {

/// Reads a network from an ONNX file. Settings: `output` (which of several outputs, or any value in between), `loss`
/// and `weights` (file, or random). Throws Error: what is not supported is listed with op and node, all of it at once.
Graph load(const std::string& path, const NetworkOptions& options);

}  // namespace orthant::model::onnx
