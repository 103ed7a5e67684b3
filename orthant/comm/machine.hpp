#pragma once

#include "orthant/comm/comm.hpp"

#include <string>
#include <vector>

namespace orthant::comm {

std::string host_name();

/// Collective. The ranks of this machine in ascending order, this one included, also where they may not open each
/// other's files: those with the same host name and the same start of the system.
std::vector<int> ranks_of_machine(Comm& comm);

/// A rank's part of the hardware threads of its machine.
struct ProcessorShare {
  int ranks = 1;                  ///< of the machine
  int index = 0;                  ///< of this rank among them
  int threads = 1;                ///< for this rank
  bool is_bound = false;          ///< the launcher gave this rank processors that no other rank has
  bool is_less_than_one = false;  ///< of a hardware thread: ranks take turns
};

/// Collective. Each hardware thread is divided among the ranks of the machine that may run on it.
ProcessorShare processor_share(Comm& comm);

/// Binds this process to processors of its own: `threads` whole cores, or hardware threads where there are too few
/// cores. Does nothing if the ranks of the machine want more than it has, or are bound already.
void bind_to_share(const ProcessorShare& share, int threads);

}  // namespace orthant::comm
