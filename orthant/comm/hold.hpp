#pragma once

#include <sys/types.h>

namespace orthant::comm {

/// Open MPI's mpirun, once it is told to end, kills its ranks two seconds after that, whatever they are saving, and so
/// do its daemons on other machines. A rank can hold it: it is stopped (SIGSTOP) until the ranks have saved, and then
/// goes on to end the job. It is never left so: all who end the job release it, and a process beside the first rank of
/// each machine does if that rank is killed.

/// Finds out whether this rank was started by Open MPI, and starts the process that releases it. Call it once, before
/// MPI starts and while the process is small.
void prepare_to_hold_launcher();
/// Whether a signal of this process comes from Open MPI's launcher. Safe in signal handlers, as the next two.
bool is_launcher(pid_t sender) noexcept;
void hold_launcher() noexcept;
/// Does nothing if it is not held.
void release_launcher() noexcept;

}  // namespace orthant::comm
