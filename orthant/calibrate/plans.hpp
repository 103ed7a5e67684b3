#pragma once

#include "orthant/calibrate/tasks.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/plan/plan.hpp"

namespace orthant::calibrate {

/// Collective. What the tasks of all ranks take under a plan for as many ranks as there are, each rank running its own.
/// With several micro-batches this includes convolutions on prepared weights.
TaskTimes measure_plan(const model::Graph& graph, const plan::Plan& plan, const model::Optimizer& optimizer,
                       comm::Comm& comm, const TaskTimes& known, const TaskOptions& options);

}  // namespace orthant::calibrate
