#include "orthant/kernels/winograd/conv.hpp"

#include "orthant/kernels/conv.hpp"

namespace orthant::kernels::winograd {

bool applies(const model::ConvTask& task) {
  bool any = false;
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const std::int64_t size = task.window.size[dim];
    if ((size != 1 && size != 3) || task.window.stride[dim] != 1 || task.window.dilation[dim] != 1) return false;
    any = any || size == 3;
  }
  const model::ActivationKind kind = task.activation.kind;
  const bool line = kind == model::ActivationKind::identity || kind == model::ActivationKind::relu ||
                    kind == model::ActivationKind::leaky_relu;
  const auto packed = [](const tensor::Layout& layout) { return layout.strides.c == 1 || layout.extents.c == 1; };
  return any && line && tensor::pixels(task.src.extents) > 0 && tensor::pixels(task.dst.extents) > 0 &&
         packed(task.src) && packed(task.dst);
}

float slope_of(const model::Activation& activation) {
  if (activation.kind == model::ActivationKind::identity) return 1;
  return activation.kind == model::ActivationKind::relu ? 0 : static_cast<float>(activation.slope);
}

std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, int threads) {
  if (!applies(task)) return nullptr;
  if (applies_narrow(task)) return make_narrow(task, threads);
  if (task.pass == model::Pass::backward_weights) return make_weight_gradient(task, threads);
  return make_correlation(task, threads);
}

}  // namespace orthant::kernels::winograd
