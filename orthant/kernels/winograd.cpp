#include "orthant/kernels/winograd.hpp"

#include "orthant/kernels/conv.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

using tensor::Dim;
using tensor::spatial_dims;

std::size_t index_of(Dim dim) { return static_cast<std::size_t>(dim) - static_cast<std::size_t>(Dim::d); }

Tiling make_tiling(const tensor::Layout& src, const tensor::Layout& dst, const tensor::Window& window,
                   const tensor::Extent3& pad) {
  Tiling tiling{.src = src, .dst = dst};
  for (const Dim dim : spatial_dims) {
    const std::size_t i = index_of(dim);
    tiling.three[i] = window.size[dim] == 3;
    tiling.pad[i] = pad[dim];
    tiling.tiles[i] = tiling.three[i] ? (dst.extents[dim] + 1) / 2 : dst.extents[dim];
  }
  return tiling;
}

/// The n, d, h, w position of a tile.
struct Position {
  std::int64_t n = 0;
  std::array<std::int64_t, 3> tile{};
};

Position position_of(const Tiling& tiling, std::int64_t tile) {
  Position position;
  for (std::size_t i = 3; i-- > 0;) {
    position.tile[i] = tile % tiling.tiles[i];
    tile /= tiling.tiles[i];
  }
  position.n = tile;
  return position;
}

/// Calls visit(cell index, offset in the buffer or -1 outside) for `size` cells per dim from `first` on.
template <class Visit>
void walk(const tensor::Layout& layout, std::int64_t n, const std::array<std::int64_t, 3>& first,
          const std::array<std::int64_t, 3>& size, Visit visit) {
  const auto inside = [](std::int64_t x, std::int64_t extent) { return x >= 0 && x < extent; };
  int cell = 0;
  for (std::int64_t d = first[0]; d < first[0] + size[0]; ++d) {
    for (std::int64_t h = first[1]; h < first[1] + size[1]; ++h) {
      const bool row = inside(d, layout.extents.d) && inside(h, layout.extents.h);
      const std::int64_t base = layout.offset + n * layout.strides.n + d * layout.strides.d + h * layout.strides.h;
      for (std::int64_t w = first[2]; w < first[2] + size[2]; ++w) {
        visit(cell++, row && inside(w, layout.extents.w) ? base + w * layout.strides.w : -1);
      }
    }
  }
}

int power(int base, const Tiling& tiling) {
  int result = 1;
  for (const bool three : tiling.three) result *= three ? base : 1;
  return result;
}

}  // namespace

bool applies(const model::ConvTask& task) {
  bool any = false;
  for (const Dim dim : spatial_dims) {
    const std::int64_t size = task.window.size[dim];
    if ((size != 1 && size != 3) || task.window.stride[dim] != 1 || task.window.dilation[dim] != 1) return false;
    any = any || size == 3;
  }
  const model::ActivationKind kind = task.activation.kind;
  const bool line = kind == model::ActivationKind::identity || kind == model::ActivationKind::relu ||
                    kind == model::ActivationKind::leaky_relu;
  const auto packed = [](const tensor::Layout& layout) { return layout.strides.c == 1 || layout.extents.c == 1; };
  return any && line && packed(task.src) && packed(task.dst);
}

int Tiling::points() const { return power(4, *this); }
int Tiling::cells() const { return power(2, *this); }
int Tiling::taps() const { return power(3, *this); }

Tiling forward_tiling(const model::ConvTask& task) {
  return make_tiling(task.src, task.dst, task.window, task.window.pad_lo);
}

Tiling backward_data_tiling(const model::ConvTask& task) {
  tensor::Extent3 pad;
  for (const Dim dim : spatial_dims) pad[dim] = task.window.size[dim] - 1 - task.window.pad_lo[dim];
  return make_tiling(task.dst, task.src, task.window, pad);
}

void src_cells(const Tiling& tiling, std::int64_t tile, const float* src, const float* outside, const float** cells) {
  const Position at = position_of(tiling, tile);
  std::array<std::int64_t, 3> first{};
  std::array<std::int64_t, 3> size{};
  for (std::size_t i = 0; i < 3; ++i) {
    first[i] = at.tile[i] * (tiling.three[i] ? 2 : 1) - tiling.pad[i];
    size[i] = tiling.three[i] ? 4 : 1;
  }
  walk(tiling.src, at.n, first, size,
       [&](int cell, std::int64_t offset) { cells[cell] = offset < 0 ? outside : src + offset; });
}

template <class Float>
void dst_cells(const Tiling& tiling, std::int64_t tile, Float* dst, Float* outside, Float** cells) {
  const Position at = position_of(tiling, tile);
  std::array<std::int64_t, 3> first{};
  std::array<std::int64_t, 3> size{};
  for (std::size_t i = 0; i < 3; ++i) {
    size[i] = tiling.three[i] ? 2 : 1;
    first[i] = at.tile[i] * size[i];
  }
  walk(tiling.dst, at.n, first, size,
       [&](int cell, std::int64_t offset) { cells[cell] = offset < 0 ? outside : dst + offset; });
}

template void dst_cells(const Tiling&, std::int64_t, float*, float*, float**);
template void dst_cells(const Tiling&, std::int64_t, const float*, const float*, const float**);

}  // namespace orthant::kernels::winograd

namespace orthant::kernels {

std::unique_ptr<Primitive> make_winograd_conv(const model::ConvTask& task, int threads) {
  if (!winograd::applies(task)) return nullptr;
  if (task.pass == model::Pass::backward_weights) return winograd::make_weight_gradient(task, threads);
  return winograd::make_gather(task, threads);
}

}  // namespace orthant::kernels
