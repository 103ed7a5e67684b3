#pragma once

#include "orthant/model/task.hpp"

#include <string>

namespace orthant::engine {

/// The processor and the versions of all kernels: measured times hold for these only.
std::string machine_key();

/// All that the speed of a task's kernel depends on, on such a machine.
std::string task_key(const model::Task& task, int threads);

}  // namespace orthant::engine
