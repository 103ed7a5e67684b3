#include "orthant/calibrate/plans.hpp"

#include "orthant/comm/agree.hpp"
#include "orthant/engine/choose_kernels.hpp"
#include "orthant/engine/kernel_needs.hpp"

namespace orthant::calibrate {

TaskTimes measure_plan(const model::Graph& graph, const plan::Plan& plan, const model::Optimizer& optimizer,
                       comm::Comm& comm, const TaskTimes& known, const TaskOptions& options) {
  schedule::LowerOptions lowering{.optimizer = optimizer, .machines = plan::Machines(comm.ranks_per_machine())};
  const tensor::Range here = lowering.machines.neighbours(comm.rank());
  lowering.shares_memory = here.hi - here.lo == static_cast<std::int64_t>(comm.sharing_ranks().size());
  TaskTimes found;
  TaskTimes all = known;
  const auto measure = [&](const plan::Plan& one, const TaskOptions& how) {
    const auto schedule = comm::agree(comm, [&] { return schedule::lower(graph, one, comm.rank(), lowering); });
    for (auto& [key, task] : measure_tasks(schedule, comm, all, how)) {
      found[key] = task;
      all[key] = task;
    }
  };
  measure(plan, options);
  if (plan.micro_batches == 1) return found;
  // Only these algorithms prepare weights.
  lowering.needs = engine::kernel_needs(options.threads);
  TaskOptions as_named = options;
  as_named.all_ways = false;
  for (const model::Algorithm algorithm : {model::Algorithm::winograd, model::Algorithm::onednn}) {
    const engine::ChooseOptions choice{.threads = options.threads, .preferred = algorithm};
    measure(engine::choose_kernels(graph, plan, lowering, comm, choice), as_named);
  }
  return found;
}

}  // namespace orthant::calibrate
