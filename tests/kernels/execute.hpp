#pragma once

#include "orthant/kernels/primitive.hpp"

#include <vector>

namespace orthant::test {

/// Makes the primitive of a task and runs it once.
inline void execute(const model::Task& task, const std::vector<void*>& arguments, int threads = 2,
                    const kernels::Context& context = {}) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const std::unique_ptr<kernels::Primitive> primitive = kernels::make_primitive(task, threads);
  std::vector<Line> scratch(static_cast<std::size_t>(primitive->scratch_bytes()) / sizeof(Line) + 1);
  primitive->execute(context, arguments, scratch.data());
}

}  // namespace orthant::test
