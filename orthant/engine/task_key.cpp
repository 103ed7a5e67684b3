#include "orthant/engine/task_key.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/machine.hpp"

#include <array>

namespace orthant::engine {
namespace {

/// Kernels change from version to version: choices of another one do not count.
constexpr int kernels_revision = 5;

std::string text_of(const tensor::Layout& layout) {
  const auto five = [](const tensor::Shape& shape) {
    return fmt::format("{}x{}x{}x{}x{}", shape.n, shape.c, shape.d, shape.h, shape.w);
  };
  return tensor::is_dense(layout) ? five(layout.extents)
                                  : fmt::format("{} steps {}", five(layout.extents), five(layout.strides));
}

std::string text_of(const tensor::Extent3& extent) { return fmt::format("{}x{}x{}", extent.d, extent.h, extent.w); }

}  // namespace

std::string machine_key() {
  const kernels::Machine machine = kernels::describe_machine();
  return fmt::format("{}; {}; oneDNN {} {}; kernels {}", machine.processor, machine.simd_target, machine.onednn_version,
                     machine.onednn_isa, kernels_revision);
}

std::string task_key(const model::ConvTask& task, int threads) {
  constexpr std::array passes{"forward", "backward_data", "backward_weights"};
  const tensor::Window& window = task.window;
  return fmt::format("{} {} src {} dst {} window {} stride {} dilation {} pad {} groups {}{}{} threads {}",
                     passes[static_cast<std::size_t>(task.pass)], model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), text_of(window.size), text_of(window.stride),
                     text_of(window.dilation), text_of(window.pad_lo), task.groups, task.bias ? " bias" : "",
                     task.accumulate ? " accumulate" : "", threads);
}

}  // namespace orthant::engine
