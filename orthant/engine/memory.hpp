#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/schedule/schedule.hpp"

#include <cstdint>

namespace orthant::engine {

/// Bytes this process can still take: what the system has available, or what its control group leaves if that is less.
std::int64_t available_memory_bytes();

/// Collective. The same, divided by the number of ranks on this machine.
std::int64_t available_memory_bytes(comm::Comm& comm);

/// The most memory this process has held so far.
std::int64_t peak_memory_bytes();

/// What one rank is about to take.
struct MemoryNeed {
  std::int64_t bytes = 0;         ///< all of it, what it has in common with others included
  std::int64_t common_bytes = 0;  ///< of these: in memory that the ranks of comm.sharing_ranks() have once for all
};

/// Collective. Throws CollectiveError (71) if what the ranks of a machine are about to take does not fit into what the
/// machine, or their control group, has; it names the host, its ranks and both numbers.
void check_machine_memory(comm::Comm& comm, const MemoryNeed& need);

/// Throws Error (71) with both numbers if `bytes` more do not fit.
void check_memory(std::int64_t bytes);
/// The same for an arena, as EngineOptions::before_allocation wants it.
void check_arena(const schedule::Placement& placement);

}  // namespace orthant::engine
