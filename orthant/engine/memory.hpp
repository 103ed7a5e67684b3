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

/// Throws Error (71) with both numbers if `bytes` more do not fit.
void check_memory(std::int64_t bytes);
/// The same for an arena, as EngineOptions::before_allocation wants it.
void check_arena(const schedule::Placement& placement);

}  // namespace orthant::engine
