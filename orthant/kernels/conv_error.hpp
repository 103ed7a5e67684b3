#pragma once

#include "orthant/model/task.hpp"

#include <span>

namespace orthant::kernels {

/// How far the result of a convolution lies from one computed in double, relative to its size: the norm of the
/// differences of some hundred items over the norm of those items. `arguments` are the task's, after it has run; a task
/// that accumulates has no such error.
double sampled_error(const model::ConvTask& task, std::span<void* const> arguments);

}  // namespace orthant::kernels
