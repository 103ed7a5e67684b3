#include "orthant/cli/auto_plan.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/calibrate/profile_file.hpp"
#include "orthant/cli/machine_profile.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/planner/planner.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::cli {
namespace {

bool is_auto(const ParallelArguments& arguments) { return arguments.strategy == "auto"; }

/// What was measured on this machine, and not on another one: plans are compared by it.
oracle::Profile profile_for_search() {
  oracle::Profile profile = measured_profile();
  const std::string processor = kernels::machine_key();
  if (!profile.processor.empty() && profile.processor != processor)
    base::fail(base::Exit::bad_data,
               "{}: the profile is of '{}', but this is '{}'; run `orthant calibrate` here with "
               "another file in ORTHANT_PROFILE",
               calibrate::profile_path(), profile.processor, processor);
  return profile;
}

plan::Plan found_plan(const ParallelArguments& arguments, const model::Graph& graph,
                      const planner::PlanningOptions& options) {
  const planner::Planned planned = planner::plan_best(graph, profile_for_search(), options);
  if (!planned.found()) {
    const std::string why = planned.advice.empty() ? "no plan can be made" : planned.advice;
    base::fail(base::Exit::does_not_fit, "--strategy auto: {}", why);
  }
  const planner::Candidate& best = planned.best;
  fmt::print(stderr, "plan: {} ({}), predicted {} ±{:.0f} % per step\nplan: {}\n", best.name,
             plan::to_text(plan::main_grid(best.plan, graph)), seconds_text(best.prediction.seconds),
             std::ceil(100 * best.prediction.error), planned.reason);
  plan::Plan plan = best.plan;
  if (arguments.micro_batches > 0) plan.micro_batches = arguments.micro_batches;
  return plan;
}

/// Collective. Where ranks take turns on processors, a message costs time in which another rank could compute, and
/// nobody gains from messages that travel at the same time: sums take the form that has the fewest. What was asked for,
/// or stands in a plan file, stays.
plan::Plan suited_to_processors(plan::Plan plan, const ParallelArguments& arguments, comm::Comm& comm) {
  const bool takes_turns = comm::max(comm, arguments.share.is_less_than_one ? 1 : 0) != 0;
  if (takes_turns && arguments.exchange.empty() && arguments.plan.empty()) plan.exchanges.sums.form = plan::Form::tree;
  return plan;
}

}  // namespace

void check_plan(const ParallelArguments& arguments, const model::Graph& graph, int ranks) {
  if (is_auto(arguments)) {
    profile_for_search();
  } else {
    plan_for(arguments, graph, ranks);
  }
}

plan::Plan common_plan(const ParallelArguments& arguments, const model::Graph& graph, oracle::StepOptions step,
                       comm::Comm& comm) {
  if (!is_auto(arguments)) {
    const plan::Plan plan = comm::agree(comm, [&] { return plan_for(arguments, graph, comm.size()); });
    return suited_to_processors(plan, arguments, comm);
  }
  const std::vector<int> together = comm.ranks_per_machine();
  step.threads = threads_per_rank(arguments);
  step.ranks_per_machine = *std::max_element(together.begin(), together.end());
  const std::int64_t memory_bytes = engine::available_memory_bytes(comm);
  const std::string text = comm::on_root(comm, [&] {
    return plan::to_json(found_plan(arguments, graph,
                                    {.ranks = comm.size(),
                                     .memory_bytes_per_rank = memory_bytes,
                                     .micro_batches = arguments.micro_batches,
                                     .step = step}));
  });
  return comm::agree(comm, [&] {
    plan::Plan plan = plan::from_json(text, "--strategy auto");
    apply_errors(arguments, plan);
    plan::verify(plan, graph);
    return plan;
  });
}

}  // namespace orthant::cli
