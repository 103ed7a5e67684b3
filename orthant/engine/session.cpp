#include "orthant/engine/session.hpp"

#include "orthant/base/checked.hpp"
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

}  // namespace

Session::Session(model::Graph graph, const plan::Plan& plan, comm::Comm& comm, const SessionOptions& options)
    : graph_(std::move(graph)), comm_(&comm), plan_(with_kernels(graph_, plan, comm, options)) {
  const auto check = [&](const schedule::Placement& placement) {
    options.before_allocation(placement);
    check_memory(base::checked_add(placement.arena_bytes, options.other_bytes));
  };
  engine_ = comm::agree(comm, [&] {
    schedule::LowerOptions lowering = options.lowering;
    lowering.needs = kernel_needs(options.threads);
    lowering.machines = machines_of(comm, plan_.exchanges.most_ranks_per_machine);
    lowering.shares_memory = shares_memory(comm, lowering.machines);
    return std::make_unique<Engine>(schedule::lower(graph_, plan_, comm.rank(), lowering), comm,
                                    EngineOptions{.threads = options.threads, .before_allocation = check});
  });
}

void Session::initialise_weights(std::uint64_t seed) {
  std::vector<float> values;
  for (const schedule::ParameterBuffers& buffers : schedule().parameters) {
    if (buffers.value < 0) continue;
    values.resize(static_cast<std::size_t>(model::count(buffers.parameter)));
    model::initialise(graph_, buffers.parameter, seed, values);
    set_parameter(buffers, values);
  }
}

void Session::set_parameter(const schedule::ParameterBuffers& buffers, std::span<const float> whole) {
  shard_.resize(engine_->item_count(buffers.value));
  to_kernel_order(graph_, buffers.parameter, buffers.shard, whole, shard_);
  engine_->write(buffers.value, shard_);
}

}  // namespace orthant::engine
