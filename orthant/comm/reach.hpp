#pragma once

#include "orthant/comm/hosts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::comm {

/// How Open MPI starts its daemons: OMPI_MCA_plm_rsh_agent, else ssh without questions. Empty where a batch system does
/// it instead.
std::vector<std::string> launch_agent();

/// What ranks will need on every host.
struct Expectation {
  std::string program;  ///< path
  std::string folder;   ///< the working directory
  std::string version;  ///< what the program prints for --version
};

/// Asks all hosts but this machine whether they can run the program, several at a time, and returns how many hardware
/// threads each has (nothing where nobody was asked). Throws Error for the first host that cannot be reached (71),
/// lacks the directory or the program (66), or has another version of it (76).
std::vector<std::optional<int>> ask_hosts(std::span<const Host> hosts, const Expectation& expected,
                                          const std::vector<std::string>& agent);

}  // namespace orthant::comm
