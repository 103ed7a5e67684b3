#include "orthant/engine/kernel_needs.hpp"

#include "orthant/kernels/conv.hpp"

#include <utility>

namespace orthant::engine {

std::function<schedule::KernelNeeds(const model::Task&)> kernel_needs(int threads) {
  return [threads](const model::Task& task) {
    schedule::KernelNeeds needs{.scratch_bytes = kernels::make_primitive(task, threads)->scratch_bytes()};
    const auto* conv = std::get_if<model::ConvTask>(&task);
    if (!conv || conv->prepared_bytes > 0) return needs;
    kernels::PreparedWeights prepared = kernels::prepared_weights(*conv, threads);
    needs.prepared_bytes = prepared.bytes;
    needs.prepared_form = std::move(prepared.form);
    return needs;
  };
}

}  // namespace orthant::engine
