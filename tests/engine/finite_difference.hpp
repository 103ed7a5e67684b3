#pragma once

#include "tests/engine/interpreter.hpp"

namespace orthant::test {

/// d loss / d item for every item of a buffer, by central differences.
Numbers central_differences(Interpreter& interpreter, int buffer, const kernels::Context& context);

}  // namespace orthant::test
