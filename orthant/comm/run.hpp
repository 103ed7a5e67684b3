#pragma once

#include "orthant/comm/comm.hpp"

#include <functional>

namespace orthant::comm {

struct RunOptions {
  /// Longer messages are sent in pieces of this size.
  std::int64_t piece_bytes = std::int64_t{1} << 30U;
};

/// Owns MPI: starts it if the process was started by mpirun or srun (see launch.hpp), and else runs `body` alone
/// without it. Returns the exit code, the same on all ranks.
///
/// A CollectiveError is known to all ranks: rank 0 prints it, and all leave with its code. Any other exception is known
/// to one rank only: it is printed with its rank, once per machine, and the job is aborted with its code. So are
/// exceptions that reach std::terminate. At most once per process.
int run(const std::function<int(Comm&)>& body, const RunOptions& options = {});

/// Call this before printing an error that occurred before run(), which probably all ranks have at the same time. It
/// returns at once on rank 0. On the other ranks it waits, so that the launcher normally ends them when rank 0 exits;
/// they print their own error only if it does not.
void let_rank_0_fail_first();

}  // namespace orthant::comm
