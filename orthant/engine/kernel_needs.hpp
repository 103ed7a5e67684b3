#pragma once

#include "orthant/schedule/schedule.hpp"

#include <functional>

namespace orthant::engine {

/// What kernels need here, with so many threads.
std::function<schedule::KernelNeeds(const model::Task&)> kernel_needs(int threads);

}  // namespace orthant::engine
