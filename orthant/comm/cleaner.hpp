#pragma once

#include <sys/types.h>

#include <string>

namespace orthant::comm {

/// A process beside the command that has started mpirun. If the command is killed, it ends what is left of the job on
/// this machine, and removes Open MPI's files. Ranks do so, too, but may not have begun.
class Cleaner {
 public:
  /// `address` is the attendance's, which the job's processes have in their environment.
  Cleaner(pid_t mpirun, const std::string& address);
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  /// Ends it: nothing is left to be done.
  ~Cleaner();

 private:
  pid_t pid_ = -1;
};

}  // namespace orthant::comm
