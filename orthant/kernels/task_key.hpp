#pragma once

#include "orthant/model/task.hpp"

#include <string>

namespace orthant::kernels {

/// The processor and the versions of all kernels. Measured times are valid only for machines with the same key.
std::string machine_key();

/// Everything that the speed of a task's kernel depends on, on one kind of machine.
std::string task_key(const model::Task& task, int threads);

}  // namespace orthant::kernels
