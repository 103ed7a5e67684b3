#pragma once

#include "orthant/plan/compact_grid.hpp"
#include "orthant/plan/plan.hpp"

#include <optional>
#include <span>
#include <string>

namespace orthant::plan {

/// A plan that verify() accepts, or why there is none.
struct Attempt {
  Plan plan;
  std::string refusal;  ///< empty if the plan can run
};

/// Cuts every node as asked where that suits it. `micro_batches` is 0 where the plan may choose.
Attempt attempt(const model::Graph& graph, const CompactGrid& asked, int micro_batches);

/// The spatial grid that suits most of the network, for so many blocks; all 1 if there is none.
tensor::Grid best_spatial(const model::Graph& graph, int blocks);

/// As many sample groups as divide ranks and micro-batch, but not all ranks: something is left to cut in another way.
int sample_groups(std::int64_t samples, int ranks);

/// Samples that go through the network at a time.
std::int64_t micro_batch_samples(const model::Graph& graph, int micro_batches);

/// What to do instead of a grid that was refused, in words: the first of the `wanted` grids that can run, then what is
/// nearest to `asked`, then other ways of cutting over as many ranks, then over fewer. Everything named was tried.
std::string advice(const model::Graph& graph, const CompactGrid& asked, int micro_batches,
                   std::span<const CompactGrid> wanted = {});

}  // namespace orthant::plan
