#pragma once

#include "orthant/model/graph.hpp"

#include <vector>

namespace orthant::model {

/// What a node costs for the graph's mini-batch.
struct NodeWork {
  std::int64_t flops = 0;             ///< forward; convolutions and dense layers, a multiply-add is two
  std::int64_t activation_bytes = 0;  ///< of dst, float32
  std::int64_t parameters = 0;        ///< trainable
};

/// Throws Error on overflow.
NodeWork work_of(const Graph& graph, int node);

struct GraphWork {
  std::vector<NodeWork> nodes;
  std::int64_t parameters = 0;
  std::int64_t forward_flops = 0;
  std::int64_t conv_flops = 0;  ///< convolutions, transposed ones included: forward x 3
  std::int64_t activation_bytes = 0;
};

GraphWork work_of(const Graph& graph);

}  // namespace orthant::model
