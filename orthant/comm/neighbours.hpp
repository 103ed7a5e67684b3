#pragma once

#include "orthant/comm/comm.hpp"

#include <sys/types.h>

#include <vector>

namespace orthant::comm {

/// A rank of this machine.
struct Neighbour {
  int rank = 0;
  pid_t pid = 0;
};

/// Collective. The ranks whose processes see each other, including this one, in ascending order.
std::vector<Neighbour> neighbours(Comm& comm);

/// Collective. How many ranks each machine has, in the order of ranks. Ranks of a machine that are not consecutive
/// count as several machines.
std::vector<int> ranks_per_machine(Comm& comm);

/// The neighbour with this rank, or nullptr.
const Neighbour* find_neighbour(std::span<const Neighbour> neighbours, int rank);

/// Collective. True if all ranks of this machine can open each other's files.
bool can_open_files(Comm& comm, std::span<const Neighbour> neighbours);

/// Opens a file that another process of this machine has open; -1 with errno set if it may not.
int open_file_of(pid_t pid, int file, int flags);

}  // namespace orthant::comm
