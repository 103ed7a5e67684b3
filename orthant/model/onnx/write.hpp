#pragma once

#include "orthant/model/graph.hpp"

#include <functional>
#include <span>
#include <string_view>

namespace orthant::model::onnx {

/// What a graph is written with. Parameters come one at a time, in the order of files of weights.
struct Sink {
  std::function<void(const Parameter&, std::span<float>)> values;
  std::function<void(std::string_view)> write;
};

/// Writes a network in evaluation form as an ONNX file of opset 17: dropout is left out, and normalisations take
/// running statistics. Mini-batches are open. Parameters have the names and extents that files of weights have. Throws
/// Error before anything is written if it does not fit into the 2 GiB that ONNX files may have.
void write_model(const Graph& graph, const Sink& sink);

}  // namespace orthant::model::onnx
