#pragma once

#include "orthant/schedule/schedule.hpp"

namespace orthant::engine {

/// What kernels need here, with so many threads.
schedule::KernelNeeds kernel_needs(int threads);

}  // namespace orthant::engine
