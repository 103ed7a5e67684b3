#pragma once

#include "orthant/model/graph.hpp"

#include <span>

namespace orthant::engine {

/// Copies a parameter between the order of files (PyTorch's) and that of the kernels.
void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, std::span<const float> file,
                     std::span<float> memory);
void to_file_order(const model::Graph& graph, const model::Parameter& parameter, std::span<const float> memory,
                   std::span<float> file);

}  // namespace orthant::engine
