#pragma once

#include "orthant/schedule/schedule.hpp"

#include <string>

namespace orthant::schedule {

/// "conv", "pool", ...: the kind of a task.
const char* name_of(const model::Task& task);

/// One line per step: its name and the buffers it takes, e.g. "conv1.forward conv x, w, -, y".
std::string to_text(const Schedule& schedule);

/// All that a schedule says: of every step also the phase and what its kernel depends on, of every exchange its
/// messages, and of every buffer its size and life.
std::string to_full_text(const Schedule& schedule);

}  // namespace orthant::schedule
