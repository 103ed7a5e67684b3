#pragma once

#include "orthant/model/graph.hpp"

#include <span>

namespace orthant::model {

/// How the file that a network came from has a parameter; null if the network did not come from such a file.
const Stored* stored_of(const Graph& graph, const Parameter& parameter);

/// The parameter's extents in files of weights.
std::vector<std::int64_t> file_extents(const Graph& graph, const Parameter& parameter);
/// True if files of weights have it. Numbers that belong to the network itself are not in them.
bool is_in_files(const Graph& graph, const Parameter& parameter);

/// From the order of a file's items to that of the parameter's, and back. They have as many.
void from_stored(const Stored& stored, std::span<const float> file, std::span<float> items);
void to_stored(const Stored& stored, std::span<const float> items, std::span<float> file);

}  // namespace orthant::model
