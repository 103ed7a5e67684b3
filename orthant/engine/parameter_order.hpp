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

/// The same for some items of the shard, in kernels' order: what a rank updates of it, and the optimizer's state of
/// that (schedule::ParameterBuffers). `memory` has just these. So state can be read and written whatever the plan.
void to_kernel_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                     const tensor::Range& items, std::span<const float> file, std::span<float> memory);
void to_file_order(const model::Graph& graph, const model::Parameter& parameter, const plan::Shard& shard,
                   const tensor::Range& items, std::span<const float> memory, std::span<float> file);

}  // namespace orthant::engine
