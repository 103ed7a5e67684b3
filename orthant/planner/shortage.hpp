#pragma once

#include "orthant/planner/planner.hpp"

#include <functional>

namespace orthant::planner {

/// Whether some plan fits; asked with more ranks, or a smaller mini-batch.
using FitsSomehow = std::function<bool(const model::Graph& graph, const PlanningOptions& options)>;

/// What is short by how much if `smallest` is what needs least memory, and the nearest that would fit.
std::string shortage(const model::Graph& graph, const PlanningOptions& options, const Candidate& smallest,
                     double memory_bytes, const FitsSomehow& fits);

}  // namespace orthant::planner
