#include "orthant/engine/session.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/engine/choose_kernels.hpp"
#include "orthant/engine/kernel_needs.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/engine/parameter_order.hpp"
#include "orthant/model/init.hpp"

#include <algorithm>
#include <utility>

namespace orthant::engine {
namespace {

plan::Plan with_kernels(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm,
                        const SessionOptions& options) {
  comm::agree(comm, [&] { plan::verify(plan, graph); });
  ChooseOptions kernels = options.kernels;
  kernels.threads = options.threads;
  return choose_kernels(graph, plan, options.lowering, comm, kernels);
}

/// The machines of the job; larger ones count as several of at most so many ranks.
plan::Machines machines_of(const comm::Comm& comm, int most_ranks) {
  std::vector<int> counts;
  for (int left : comm.ranks_per_machine()) {
    for (; most_ranks > 0 && left > most_ranks; left -= most_ranks) counts.push_back(most_ranks);
    counts.push_back(left);
  }
  return plan::Machines(counts);
}

/// True if this rank can open the memory of all ranks of its machine.
bool shares_memory(const comm::Comm& comm, const plan::Machines& machines) {
  const std::vector<int> sharing = comm.sharing_ranks();
  const tensor::Range here = machines.neighbours(comm.rank());
  for (std::int64_t rank = here.lo; rank < here.hi; ++rank)
    if (std::find(sharing.begin(), sharing.end(), rank) == sharing.end()) return false;
  return true;
}

/// Refuses a step with more exchanges than MPI has tags for.
void check_tags(const schedule::Schedule& schedule, const comm::Comm& comm) {
  int largest = 0;
  for (const schedule::Exchange& exchange : schedule.exchanges) largest = std::max(largest, exchange.tag);
  if (largest <= comm.largest_tag()) return;
  base::fail(base::Exit::does_not_fit,
             "the step needs message tags up to {}, but this MPI has them up to {}; use fewer micro-batches", largest,
             comm.largest_tag());
}

/// The arena, in which common weights are there once for all ranks of the machine, what MPI keeps for each message that
/// is bound to memory, and a little for kernels and MPI themselves.
MemoryNeed need_of(const schedule::Schedule& schedule, const schedule::Placement& placement, std::int64_t other_bytes) {
  constexpr std::int64_t request_bytes = 900, little_bytes = 16 << 20;
  const std::int64_t requests = schedule::request_count(schedule);
  MemoryNeed need{.bytes = base::checked_add(base::checked_add(placement.arena_bytes, other_bytes),
                                             base::checked_mul(requests, request_bytes) + little_bytes)};
  for (const schedule::Bucket& bucket : schedule.buckets) {
    if (!bucket.common.empty())
      need.common_bytes += schedule::whole_pages(schedule.buffers[static_cast<std::size_t>(bucket.value)].bytes);
  }
  return need;
}

}  // namespace

Session::Session(model::Graph graph, const plan::Plan& plan, comm::Comm& comm, const SessionOptions& options)
    : graph_(std::move(graph)), comm_(&comm), plan_(with_kernels(graph_, plan, comm, options)) {
  schedule::Placement placement;
  auto schedule = comm::agree(comm, [&] {
    schedule::LowerOptions lowering = options.lowering;
    lowering.needs = kernel_needs(options.threads);
    lowering.machines = machines_of(comm, plan_.exchanges.most_ranks_per_machine);
    lowering.shares_memory = shares_memory(comm, lowering.machines);
    schedule::Schedule made = schedule::lower(graph_, plan_, comm.rank(), lowering);
    check_tags(made, comm);
    placement = schedule::place(made);
    options.before_allocation(placement);
    return made;
  });
  check_machine_memory(comm, need_of(schedule, placement, options.other_bytes));
  engine_ = comm::agree(comm, [&] {
    return std::make_unique<Engine>(std::move(schedule), comm, EngineOptions{.threads = options.threads});
  });
}

void Session::initialise_weights(std::uint64_t seed) {
  std::int64_t most = 0;
  for (const schedule::ParameterBuffers& buffers : schedule().parameters)
    if (buffers.value >= 0) most = std::max(most, model::count(buffers.parameter));
  // Reserved at once, it is memory of its own that goes back to the system; a vector that grows leaves holes behind.
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(most));
  for (const schedule::ParameterBuffers& buffers : schedule().parameters) {
    if (buffers.value < 0) continue;
    values.resize(static_cast<std::size_t>(model::count(buffers.parameter)));
    model::initialise(graph_, buffers.parameter, seed, values);
    set_parameter(buffers, values);
  }
}

void Session::set_parameter(const schedule::ParameterBuffers& buffers, std::span<const float> whole) {
  to_kernel_order(graph_, buffers.parameter, buffers.shard, whole, engine_->floats(buffers.value));
}

}  // namespace orthant::engine
