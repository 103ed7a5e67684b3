#include "orthant/kernels/task_key.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/machine.hpp"
#include "orthant/model/signature.hpp"

namespace orthant::kernels {
namespace {

/// Counts up when kernels change, because choices that were measured with other kernels are void.
constexpr int kernels_revision = 7;

}  // namespace

std::string machine_key() {
  const Machine machine = describe_machine();
  return fmt::format("{}; {}; oneDNN {} {}; kernels {}", machine.processor, machine.simd_target, machine.onednn_version,
                     machine.onednn_isa, kernels_revision);
}

std::string task_key(const model::Task& task, int threads) {
  return fmt::format("{} threads {}", model::signature(task).text, threads);
}

}  // namespace orthant::kernels
