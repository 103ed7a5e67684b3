#pragma once

#include "orthant/plan/plan.hpp"
#include "tests/support/random.hpp"

namespace orthant::test {

/// A plan with another cut, on other ranks, for every node: uneven blocks, sums over channels in parts, ranks that own
/// nothing of a node.
plan::Plan random_plan(const model::Graph& graph, int ranks, Random& random);

/// True if plan::verify accepts the plan.
bool can_run(const plan::Plan& plan, const model::Graph& graph);

}  // namespace orthant::test
