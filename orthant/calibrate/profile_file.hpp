#pragma once

#include "orthant/oracle/profile.hpp"

#include <optional>
#include <string>

namespace orthant::calibrate {

/// ORTHANT_PROFILE, or profile.json beside the file of kernel choices; empty if there is no such place.
std::string profile_path();

/// The profile of a file, or an empty one for this processor if there is no such file. Throws Error (65) if it is of
/// another processor, or no profile.
oracle::Profile open_profile(const std::string& path, const std::string& processor);

/// The setting of so many threads and ranks, or null.
const oracle::Setting* find_setting(const oracle::Profile& profile, int threads, int ranks_per_machine);

/// What one call measured.
struct Findings {
  oracle::Setting setting{};  ///< its tasks are those that are new
  std::optional<oracle::Link> inside{}, between{};
  std::optional<double> poll_seconds{}, file_bytes_per_second{};
  std::int64_t memory_bytes = 0, process_bytes = 0;
  int cores = 1;
  bool shares_memory = true;
};

/// Adds findings to a profile: tasks join those of the same setting, other figures replace older ones. A link that was
/// never measured is as the other one, or as memory.
void merge(oracle::Profile& profile, const Findings& found);

/// Writes the file in one go, with its folders.
void store_profile(const oracle::Profile& profile, const std::string& path);

}  // namespace orthant::calibrate
