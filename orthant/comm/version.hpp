#pragma once

#include "orthant/comm/comm.hpp"

#include <string>

namespace orthant::comm {

/// "0.1.0, build 90584e7ae817": the linker's hash of the program. Programs that differ in anything differ in it.
std::string version_text();

/// Collective. Throws CollectiveError (76) if the ranks run different programs; it names both and their hosts.
void check_same_program(Comm& comm, const std::string& version);

}  // namespace orthant::comm
