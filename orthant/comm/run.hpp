#pragma once

#include "orthant/comm/comm.hpp"

#include <functional>

namespace orthant::comm {

struct RunOptions {
  /// Longer messages travel in pieces.
  std::int64_t piece_bytes = std::int64_t{1} << 30U;
};

/// Owns MPI: starts it if the process was started by mpirun or srun (see launch.hpp), and else runs `body` alone
/// without it. Returns the exit code, the same on all ranks.
///
/// A CollectiveError is known to all ranks: rank 0 prints it, and all leave with its code. Any other exception is known
/// to one rank only: it is printed with its rank, once per machine, and the job is aborted with its code. So are
/// exceptions that reach std::terminate. At most once per process.
int run(const std::function<int(Comm&)>& body, const RunOptions& options = {});

/// For errors before run(), which all ranks are likely to meet at once: call it before printing one. Rank 0 goes first;
/// the launcher ends the others when rank 0 leaves, and only if it does not, they print theirs.
void let_rank_0_fail_first();

}  // namespace orthant::comm
