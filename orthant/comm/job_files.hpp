#pragma once

#include <sys/types.h>

#include <string>

namespace orthant::comm {

/// Removes what an mpirun that was killed would have removed: its directory among the temporary files, and the shared
/// memory of its ranks. `job` is what Open MPI calls the job (PMIX_NAMESPACE), or empty where no rank was seen.
void remove_job_files(pid_t mpirun, const std::string& job);

/// The directory for temporary files, as Open MPI finds it.
std::string temporary_directory();

}  // namespace orthant::comm
