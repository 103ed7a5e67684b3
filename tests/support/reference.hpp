#pragma once

#include "orthant/kernels/primitive.hpp"
#include "orthant/model/task.hpp"

#include <span>
#include <vector>

namespace orthant::test {

/// The items of one argument's buffer, whatever their type in memory: floats, labels, argmax indices or losses.
/// Layouts index into it as they index into the buffer.
using Numbers = std::vector<double>;

/// Executes a task by its definition in orthant/model/task.hpp: nested loops in double, nothing optimised.
/// Arguments as the task's comment lists them, null where it says so; several may be the same buffer, since
/// everything is read as it was before the call.
void execute_reference(const model::Task& task, const kernels::Context& context, std::span<Numbers* const> arguments);

}  // namespace orthant::test
