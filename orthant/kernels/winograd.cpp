#include "orthant/kernels/winograd.hpp"

#include "orthant/kernels/conv.hpp"

#include <algorithm>

namespace orthant::kernels::winograd {
namespace {

using tensor::Dim;
using tensor::spatial_dims;

std::size_t index_of(Dim dim) { return static_cast<std::size_t>(dim) - static_cast<std::size_t>(Dim::d); }

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

using Triple = std::array<std::int64_t, 3>;

/// Cells of a patch or tile, from `first` on.
struct Cells {
  const tensor::Layout& layout;
  std::int64_t n;
  Triple first, size;
};

std::int64_t offset_of(const tensor::Layout& layout, std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) {
  const tensor::Shape& strides = layout.strides;
  return layout.offset + n * strides.n + d * strides.d + h * strides.h + w * strides.w;
}

bool inside(std::int64_t first, std::int64_t size, std::int64_t extent) { return first >= 0 && first + size <= extent; }

/// Offsets of all cells from the first one, inside or not.
void relative_offsets(const tensor::Layout& layout, const Triple& size, std::int64_t* offsets) {
  const tensor::Layout from_zero{.extents = layout.extents, .strides = layout.strides};
  for (std::int64_t d = 0; d < size[0]; ++d) {
    for (std::int64_t h = 0; h < size[1]; ++h) {
      for (std::int64_t w = 0; w < size[2]; ++w) *offsets++ = offset_of(from_zero, 0, d, h, w);
    }
  }
}

template <class Float>
void point_to(const Cells& cells, const std::int64_t* offsets, Float* buffer, Float* outside, Float** pointers) {
  const auto& [layout, n, first, size] = cells;
  const tensor::Shape& extents = layout.extents;
  if (inside(first[0], size[0], extents.d) && inside(first[1], size[1], extents.h) &&
      inside(first[2], size[2], extents.w)) {
    Float* const base = buffer + offset_of(layout, n, first[0], first[1], first[2]);
    const std::int64_t count = size[0] * size[1] * size[2];
    for (std::int64_t i = 0; i < count; ++i) pointers[i] = base + offsets[i];
    return;
  }
  for (std::int64_t d = first[0]; d < first[0] + size[0]; ++d) {
    for (std::int64_t h = first[1]; h < first[1] + size[1]; ++h) {
      const bool row = inside(d, 1, extents.d) && inside(h, 1, extents.h);
      for (std::int64_t w = first[2]; w < first[2] + size[2]; ++w) {
        *pointers++ = row && inside(w, 1, extents.w) ? buffer + offset_of(layout, n, d, h, w) : outside;
      }
    }
  }
}

/// Cells per dim of a src patch (4 where there are three taps) or a dst tile (2).
Triple box_size(const Tiling& tiling, std::int64_t where_three) {
  Triple size{};
  for (std::size_t i = 0; i < 3; ++i) size[i] = tiling.three[i] ? where_three : 1;
  return size;
}

Tiling make_tiling(const tensor::Layout& src, const tensor::Layout& dst, const tensor::Window& window,
                   const tensor::Extent3& pad) {
  Tiling tiling{.src = src, .dst = dst};
  for (const Dim dim : spatial_dims) {
    const std::size_t i = index_of(dim);
    tiling.three[i] = window.size[dim] == 3;
    tiling.pad[i] = pad[dim];
    tiling.tiles[i] = tiling.three[i] ? (dst.extents[dim] + 1) / 2 : dst.extents[dim];
  }
  relative_offsets(src, box_size(tiling, 4), tiling.src_offsets.data());
  relative_offsets(dst, box_size(tiling, 2), tiling.dst_offsets.data());
  return tiling;
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
  return any && line && tensor::pixels(task.src.extents) > 0 && tensor::pixels(task.dst.extents) > 0 &&
         packed(task.src) && packed(task.dst);
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
  Cells patch{.layout = tiling.src, .n = at.n, .first = {}, .size = box_size(tiling, 4)};
  for (std::size_t i = 0; i < 3; ++i) patch.first[i] = at.tile[i] * (tiling.three[i] ? 2 : 1) - tiling.pad[i];
  point_to(patch, tiling.src_offsets.data(), src, outside, cells);
}

template <class Float>
void dst_cells(const Tiling& tiling, std::int64_t tile, Float* dst, Float* outside, Float** cells) {
  const Position at = position_of(tiling, tile);
  Cells box{.layout = tiling.dst, .n = at.n, .first = {}, .size = box_size(tiling, 2)};
  for (std::size_t i = 0; i < 3; ++i) box.first[i] = at.tile[i] * box.size[i];
  point_to(box, tiling.dst_offsets.data(), dst, outside, cells);
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
