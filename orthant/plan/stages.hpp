#pragma once

#include "orthant/model/graph.hpp"

#include <vector>

namespace orthant::plan {

/// Into how many pipeline stages the network can be cut at most: one per layer that computes.
int most_stages(const model::Graph& graph);

/// The stage of every node: runs of nodes, the largest sum of flops as small as it can be, then sums as equal and
/// tensors on the borders as small as can be. At most most_stages().
std::vector<int> balanced_stages(const model::Graph& graph, int stages);

/// Into how many pieces the mini-batch goes: about two per stage, of equal size if that can be, each with a sample for
/// each of `sample_parts`. One for a loss whose sums run over the mini-batch.
int pipeline_pieces(const model::Graph& graph, int stages, int sample_parts);

}  // namespace orthant::plan
