#include "orthant/kernels/winograd/conv.hpp"

#include "orthant/base/format.hpp"

namespace orthant::kernels::winograd {

TileSize tile_size(Kind kind) { return kind == Kind::small ? TileSize::small : TileSize::large; }

bool applies(const model::ConvTask& task, TileSize size) {
  const Sides sides = sides_of(task.window, size);
  if (find_transforms(sides) == nullptr) return false;
  if (size == TileSize::large && sides[2] == one_cell) return false;  // none of them would be large
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const Side& side = sides[static_cast<std::size_t>(dim) - static_cast<std::size_t>(tensor::Dim::d)];
    if (side.taps != task.window.size[dim] || task.window.stride[dim] != 1 || task.window.dilation[dim] != 1)
      return false;
  }
  const model::ActivationKind kind = task.activation.kind;
  const bool line = kind == model::ActivationKind::identity || kind == model::ActivationKind::relu ||
                    kind == model::ActivationKind::leaky_relu;
  const auto packed = [](const tensor::Layout& layout) { return layout.strides.c == 1 || layout.extents.c == 1; };
  return line && tensor::pixels(task.src.extents) > 0 && tensor::pixels(task.dst.extents) > 0 && packed(task.src) &&
         packed(task.dst);
}

std::string name_of(Kind kind, const Tiling& tiling) {
  if (kind == Kind::small) return "orthant:winograd:";
  const auto& [d, h, w] = tiling.sides;
  return fmt::format("orthant:winograd{}x{}x{}{}:", d.cells, h.cells, w.cells, kind == Kind::staged ? "-staged" : "");
}

float slope_of(const model::Activation& activation) {
  if (activation.kind == model::ActivationKind::identity) return 1;
  return activation.kind == model::ActivationKind::relu ? 0 : static_cast<float>(activation.slope);
}

std::unique_ptr<Primitive> make_conv(const model::ConvTask& task, Kind kind, int threads) {
  if (!applies(task, tile_size(kind))) return nullptr;
  if (kind == Kind::small && applies_narrow(task)) return make_narrow(task, threads);
  if (task.pass == model::Pass::backward_weights) {
    if (kind == Kind::staged) return make_staged_gradient(task, kind, threads);
    return make_weight_gradient(task, kind, threads);
  }
  return make_correlation(task, kind, threads);
}

}  // namespace orthant::kernels::winograd
