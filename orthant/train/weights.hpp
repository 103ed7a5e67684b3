#pragma once

#include "orthant/data/formats/safetensors.hpp"
#include "orthant/engine/session.hpp"

#include <string>

namespace orthant::train {

/// Throws Error naming tensors that are missing, superfluous or of another shape; "num_batches_tracked" is ignored.
void check_weights(const data::formats::SafetensorsFile& file, const model::Graph& graph);

/// Reads every parameter from a safetensors file with PyTorch's names and shapes, which are checked first.
void load_weights(engine::Session& session, const std::string& path);

/// Collective. Rank 0 writes every parameter, in PyTorch's layout. Throws CollectiveError (87), and leaves an earlier
/// file as it is, if a number is not finite.
void save_weights(const engine::Session& session, const std::string& path);

/// Collective. Rank 0 writes the gradient of every trainable parameter; also that of the network's source, as "input",
/// if the schedule has it.
void save_gradients(const engine::Session& session, const std::string& path);

/// Collective. Rank 0 writes the network's output as tensor "output".
void save_output(const engine::Session& session, const std::string& path);

}  // namespace orthant::train
