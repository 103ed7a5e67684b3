#include "orthant/engine/kernel_needs.hpp"

#include "orthant/kernels/conv.hpp"

#include <utility>

namespace orthant::engine {

schedule::KernelNeeds kernel_needs(int threads) {
  return {.scratch_bytes =
              [threads](const model::Task& task) { return kernels::make_primitive(task, threads)->scratch_bytes(); },
          .prepared_weights =
              [threads](const model::ConvTask& task) {
                kernels::PreparedWeights weights = kernels::prepared_weights(task, threads);
                return schedule::PreparedWeights{.bytes = weights.bytes, .form = std::move(weights.form)};
              }};
}

}  // namespace orthant::engine
