#pragma once

#include "orthant/oracle/predict.hpp"

namespace orthant::oracle {

/// The memory of one rank, by what it is for at the step that needs most of it. What lies between buffers, and what
/// waits in the arena for other steps, counts as activations.
Memory memory_of(const schedule::Schedule& schedule, std::int64_t process_bytes);

}  // namespace orthant::oracle
