#include "orthant/engine/kernel_needs.hpp"

#include "orthant/kernels/primitive.hpp"

namespace orthant::engine {

std::function<schedule::KernelNeeds(const model::Task&)> kernel_needs(int threads) {
  return [threads](const model::Task& task) {
    return schedule::KernelNeeds{.scratch_bytes = kernels::make_primitive(task, threads)->scratch_bytes()};
  };
}

}  // namespace orthant::engine
