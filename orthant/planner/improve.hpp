#pragma once

#include "orthant/planner/tables.hpp"
#include "orthant/planner/trials.hpp"

namespace orthant::planner {

/// Tries pipelines of sample-parallel stages. Not where batch statistics would be those of micro-batches: that is
/// another network, and only the strategy of that name is for those who want it.
void try_pipelines(const model::Graph& graph, int ranks, Trials& trials);

/// Changes the cut of one group at a time, those that wait longest first, to those that cost least by the tables, as
/// long as whole plans become faster and there is effort left.
void improve_cuts(const Tables& tables, int ranks, Trials& trials);

/// Tries other forms of exchange for the best plan: of those whose results depend on the plan alone, not MPI's own.
void improve_exchanges(Trials& trials);

}  // namespace orthant::planner
