#pragma once

#include "orthant/engine/candidate_tables.hpp"
#include "orthant/plan/plan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orthant::engine {

/// What the workspaces of convolutions must stay within.
struct WorkspaceLimit {
  enum class Of {
    kernel,  ///< each workspace
    total,   ///< all workspaces together
    memory   ///< the arena: a kernel may use what the tensors that are alive during its step leave free
  };
  Of of = Of::kernel;
  std::int64_t bytes = 64 << 20;
};

/// A kernel of the network before and after: the fastest undivided way within the same limit, nothing where none is,
/// and the way that was chosen. Times are of one call.
struct TunedKernel {
  Kernel kernel{};
  std::optional<Way> before{};
  Way after{};
};

struct Tuned {
  plan::Plan plan;
  std::vector<TunedKernel> kernels;
  /// Of all convolutions of a step. Nothing where some kernel has no undivided way within the limit.
  std::optional<double> undivided_seconds{};
  double seconds = 0;
  std::int64_t workspace_bytes = 0;  ///< the largest of a kernel
  std::int64_t total_bytes = 0;      ///< of all kernels
  std::int64_t arena_bytes = 0;
  std::vector<std::vector<microbatch::Division>> fronts;  ///< per kernel: all that was worth considering
  int measured = 0;                                       ///< candidates, now
  double optimiser_seconds = 0;
};

/// Chooses an algorithm and pieces for every convolution and pass of a plan for one rank, whatever it chose before, so
/// that a step's convolutions are as fast as the limit allows. Divisions are taken only where running them whole is
/// clearly faster than the undivided way. Throws Error (does_not_fit) if the limit is too small, and says what would
/// do.
Tuned tune(const model::Graph& graph, plan::Plan plan, const schedule::LowerOptions& lowering,
           const TableOptions& options, const WorkspaceLimit& limit);

}  // namespace orthant::engine
