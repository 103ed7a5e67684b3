#pragma once

#include "orthant/model/graph.hpp"

#include <cstdint>
#include <span>

namespace orthant::model {

/// Fills one parameter's starting values, in the order of its extents (PyTorch's): those of the file that the network
/// came from, or a function of the seed and the parameter's name alone, so that neither order nor number of ranks
/// matters.
void initialise(const Graph& graph, const Parameter& parameter, std::uint64_t seed, std::span<float> file_order);

}  // namespace orthant::model
