#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/oracle/profile.hpp"

#include <string>

namespace orthant::calibrate {

/// Collective. The speeds of a rank with so many threads while all ranks are at work; no tasks.
oracle::Setting measure_setting(comm::Comm& comm, int threads);

/// Collective. What a process holds besides its arena and what it reads of others: the most that it has held so far,
/// with a small network that ran on all ranks, minus these. Right only before anything else took memory.
std::int64_t measure_process_bytes(comm::Comm& comm, int threads);

/// Bytes per second of reading a temporary file of this folder again and again, which the system then has in memory: an
/// upper limit, because a program cannot make the system forget the file.
double measure_file_speed(const std::string& folder);

}  // namespace orthant::calibrate
