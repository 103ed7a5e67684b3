#pragma once

#include "orthant/model/task.hpp"
#include "orthant/plan/plan.hpp"

#include <string>
#include <vector>

namespace orthant::schedule {

enum class Phase { forward, backward, update };

/// One computation of one rank. Steps run in order.
struct Step {
  std::string name;  ///< "conv1.backward_weights"
  int node = -1;     ///< the node it belongs to
  Phase phase = Phase::forward;
  model::Task task;
  std::vector<int> arguments;  ///< buffers in the order the task's comment lists; -1 for null
};

/// A piece of the arena. Steps outside [first_step, last_step] may use its memory for something else.
struct Buffer {
  std::string name;
  std::int64_t bytes = 0;
  bool persistent = false;  ///< keeps its contents between runs: parameters, optimizer state, sources
  int first_step = -1, last_step = -1;
};

/// A parameter with the buffers that hold it, its gradient and the optimizer's state (-1 where there is none).
struct ParameterBuffers {
  model::Parameter parameter;
  int value = -1, gradient = -1;
  std::vector<int> state{};
};

/// What one rank does in one training step, in order, and the memory it needs. Pure value.
struct Schedule {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<ParameterBuffers> parameters;
  int input = -1, target = -1, output = -1, loss = -1;
  int input_gradient = -1;  ///< only if asked for
  tensor::Layout input_layout, output_layout;
  tensor::Shape target_shape;
  bool labels = false;  ///< the target is int32 labels
};

enum class Mode { train, evaluate };

struct LowerOptions {
  Mode mode = Mode::train;
  model::Optimizer optimizer{};
  bool update = true;           ///< false: forward and backward only
  bool input_gradient = false;  ///< also the gradient of the input
  bool keep_output = false;     ///< the output keeps its memory to the end of the run
};

/// The steps of `rank` under `plan`.
Schedule lower(const model::Graph& graph, const plan::Plan& plan, int rank, const LowerOptions& options);

/// Where each buffer lies in the arena, and how large the arena is. Buffers whose lifetimes do not meet may share
/// memory.
struct Placement {
  std::vector<std::int64_t> offsets;          ///< per buffer
  std::vector<std::int64_t> scratch_offsets;  ///< per step
  std::int64_t arena_bytes = 0;
  std::int64_t persistent_bytes = 0;  ///< of which persistent
};

/// `scratch_bytes` has one entry per step: what the chosen kernels need while they run.
Placement place(const Schedule& schedule, const std::vector<std::int64_t>& scratch_bytes);

}  // namespace orthant::schedule
