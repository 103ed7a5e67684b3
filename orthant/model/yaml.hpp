#pragma once

#include "orthant/model/graph.hpp"
#include "orthant/model/input_shape.hpp"

#include <optional>
#include <string>

namespace orthant::model {

/// Reads a network from YAML text (docs/networks.md); `origin` names it in messages. `input` replaces the input that
/// the text names; otherwise that one is taken with n = `mini_batch`. `output` is one of several outputs; the first if
/// it is empty.
Graph read_yaml(const std::string& text, const std::string& origin, const std::optional<InputShape>& input,
                std::int64_t mini_batch, const std::string& output = {});

/// YAML text that read_yaml turns into the same graph (n aside, which the text does not hold, and outputs that were not
/// chosen).
std::string to_yaml(const Graph& graph);

}  // namespace orthant::model
