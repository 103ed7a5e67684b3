#pragma once

#include "orthant/engine/choose.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/schedule/schedule.hpp"

namespace orthant::engine {

/// Collective. The step between plan and schedule: returns the plan with an algorithm for every convolution in every
/// pass that the schedules have, the same plan on all ranks. Choices that the plan has already are kept; throws
/// CollectiveError, naming the layer and the pass, if one of them cannot run. Open ones become the fastest algorithm,
/// or the rule's where nothing was measured. Where the tasks of ranks or micro-batches differ, the most expensive of
/// them decides among the algorithms that can run them all. `plan` must fit `graph`.
plan::Plan choose_kernels(const model::Graph& graph, plan::Plan plan, const schedule::LowerOptions& lowering,
                          comm::Comm& comm, const ChooseOptions& options);

}  // namespace orthant::engine
