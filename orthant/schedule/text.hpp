#pragma once

#include "orthant/schedule/schedule.hpp"

#include <string>

namespace orthant::schedule {

/// "conv", "pool", ...: the kind of a task.
const char* name_of(const model::Task& task);

/// One line per step: its name and the buffers it takes, e.g. "conv1.forward conv x, w, -, y".
std::string to_text(const Schedule& schedule);

}  // namespace orthant::schedule
