#pragma once

#include "orthant/plan/compact_grid.hpp"
#include "orthant/plan/plan.hpp"

#include <span>
#include <string>
#include <vector>

namespace orthant::plan {

/// "data", "spatial", "filter", "channel", "pipeline", "data+filter", "data+spatial".
std::span<const std::string> strategy_names();

/// What a named strategy means for this network: spatial blocks as cubic as the network's sizes allow; with data+X as
/// many sample groups as divide ranks and mini-batch, and X inside each.
/// Throws Error: unknown names with the nearest, too many ranks with a grid that can run.
CompactGrid strategy_grid(const model::Graph& graph, const std::string& name, int ranks, int micro_batches = 0);

/// Cuts every node as asked where that suits it, and otherwise over filters, samples, space or fewer ranks; nodes that
/// are fused get one grid. The mini-batch goes through in `micro_batches` pieces, or in as many as suit the pipeline if
/// that is 0. Throws Error(does_not_fit) with the nearest grid that can run if no layer can be cut as asked.
Plan make_plan(const model::Graph& graph, const CompactGrid& asked, int micro_batches = 0);
Plan make_plan(const model::Graph& graph, const std::string& name, int ranks, int micro_batches = 0);

/// One line per run of nodes that a verified plan cuts in another way than asked, with the reason:
/// "conv6 to pool7: 2 cells deep, too small for d4; cut over filters (f4) instead".
std::vector<std::string> remarks(const Plan& plan, const model::Graph& graph, const CompactGrid& asked);
/// The same against main_grid().
std::vector<std::string> remarks(const Plan& plan, const model::Graph& graph);

/// The cut under which most flops of the plan are done.
CompactGrid main_grid(const Plan& plan, const model::Graph& graph);

}  // namespace orthant::plan
