#pragma once

#include "orthant/comm/comm.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

namespace orthant::test {

struct ThreadCommOptions {
  /// A wait that lasts longer is an Error that names the missing messages, so that a deadlock is a failure and not a
  /// hang.
  std::chrono::milliseconds timeout{300'000};
  /// Not 0: every rank sleeps for random times before it starts and while it tests messages, so that these arrive in
  /// another order with every seed.
  std::uint64_t delays = 0;
  int largest_tag = std::numeric_limits<int>::max();
};

/// Runs `body` on `ranks` threads of this process, each with a Comm of its own, and throws the exception that came
/// first; the other ranks are then thrown out of their waits.
///
/// The Comm is as strict as MPI may be: a send is done only when its receive has been started; received data arrive
/// in test() or wait() and not before; memory that is being received holds bytes 0xff (floats: NaN). Writing to memory
/// in flight, sizes that differ, collectives that differ, transfers destroyed in flight are Errors.
void run_threads(int ranks, const std::function<void(comm::Comm&)>& body, const ThreadCommOptions& options = {});

}  // namespace orthant::test
