#pragma once

#include "orthant/cli/parallel.hpp"
#include "orthant/oracle/predict.hpp"

namespace orthant::cli {

/// Throws Error if no plan can be made as the arguments ask, before ranks are started. What --strategy auto finds is
/// not known yet then, but whether there is a profile of this machine to search with.
void check_plan(const ParallelArguments& arguments, const model::Graph& graph, int ranks);

/// Collective. The plan that the arguments ask for, the same on all ranks. With --strategy auto rank 0 searches for the
/// fastest with the profile of its machine, and says on stderr what it chose and why. `step` is what a step does;
/// threads and ranks per machine are those of this job.
plan::Plan common_plan(const ParallelArguments& arguments, const model::Graph& graph, oracle::StepOptions step,
                       comm::Comm& comm);

}  // namespace orthant::cli
