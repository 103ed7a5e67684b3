#pragma once

#include "orthant/oracle/profile.hpp"

#include <string>

namespace orthant::cli {

/// The machine that a command line names: a profile that comes with the program, a profile file, or what `orthant
/// calibrate` measured here if the name is empty. Throws Error: an unknown name with the nearest (64), no such file
/// (66), no profile in it (65).
oracle::Profile machine_profile(const std::string& name);

/// What `orthant calibrate` measured here, for commands that run on this machine.
oracle::Profile measured_profile();

}  // namespace orthant::cli
