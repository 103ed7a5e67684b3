#pragma once

#include "orthant/plan/share.hpp"

#include <span>

namespace orthant::engine {

/// Copies a rank's shard of a parameter between the order of files (PyTorch's, the whole parameter) and that of the
/// kernels.
void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     std::span<const float> file, std::span<float> memory);
void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   std::span<const float> memory, std::span<float> file);

}  // namespace orthant::engine
