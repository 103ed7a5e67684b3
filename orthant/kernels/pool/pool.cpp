#include "orthant/kernels/pool/pool.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"

#include <algorithm>

namespace orthant::kernels::pool {

using tensor::Dim;

TapRange PoolDim::clipped_taps(std::int64_t o) const {
  const std::int64_t input = first_input(o);
  const std::int64_t begin = input >= 0 ? 0 : (-input + dilation - 1) / dilation;
  const std::int64_t end = input >= src ? 0 : std::min(size, (src - 1 - input) / dilation + 1);
  return {.begin = begin, .end = std::max(begin, end)};
}

std::int64_t PoolDim::count_global(std::int64_t o) const {
  const PoolDim whole{.src = global, .size = size, .stride = stride, .dilation = dilation, .pad = pad - first};
  const TapRange taps = whole.taps_inside(o);
  return taps.end - taps.begin;
}

PoolDim pool_dim(const model::PoolTask& task, Dim dim) {
  const tensor::Window& window = task.window;
  const bool is_whole = task.global_src == tensor::cube(0);
  return {.src = task.src.extents[dim],
          .dst = task.dst.extents[dim],
          .size = window.size[dim],
          .stride = window.stride[dim],
          .dilation = window.dilation[dim],
          .pad = window.pad_lo[dim],
          .global = is_whole ? task.src.extents[dim] : task.global_src[dim],
          .first = is_whole ? 0 : task.first_src[dim]};
}

Readers::Readers(const PoolDim& dim) {
  begin.assign(static_cast<std::size_t>(dim.src) + 1, 0);
  for (std::int64_t o = 0; o < dim.dst; ++o) {
    const TapRange taps = dim.taps_inside(o);
    for (std::int64_t k = taps.begin; k < taps.end; ++k) {
      ++begin[static_cast<std::size_t>(dim.first_input(o) + k * dim.dilation) + 1];
    }
  }
  for (std::size_t s = 1; s < begin.size(); ++s) begin[s] += begin[s - 1];
  output.resize(static_cast<std::size_t>(begin.back()));
  tap.resize(output.size());
  std::vector<std::int32_t> next = begin;
  for (std::int64_t o = 0; o < dim.dst; ++o) {
    const TapRange taps = dim.taps_inside(o);
    for (std::int64_t k = taps.begin; k < taps.end; ++k) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(dim.first_input(o) + k * dim.dilation)]++);
      output[at] = static_cast<std::int32_t>(o);
      tap[at] = static_cast<std::int32_t>(k);
    }
  }
}

bool has_one_divisor(const model::PoolTask& task) {
  if (task.count_include_pad) return true;
  return std::all_of(tensor::spatial_dims.begin(), tensor::spatial_dims.end(), [&](Dim at) {
    const PoolDim dim = pool_dim(task, at);
    return dim.count_global(0) == dim.size && dim.count_global(dim.dst - 1) == dim.size;
  });
}

bool is_global_average(const model::PoolTask& task) {
  const tensor::Shape& dst = task.dst.extents;
  if (task.kind != model::PoolKind::average || dst.d * dst.h * dst.w != 1) return false;
  return std::all_of(tensor::spatial_dims.begin(), tensor::spatial_dims.end(), [&](Dim at) {
    const PoolDim dim = pool_dim(task, at);
    return dim.pad >= 0 && dim.dilation == 1 && dim.size >= dim.src + dim.pad;
  });
}

std::unique_ptr<Primitive> make_pool(const model::PoolTask& task, int threads) {
  const bool contiguous = task.src.extents.c <= 1 || (task.src.strides.c == 1 && task.dst.strides.c == 1);
  if (!contiguous) base::fail(base::Exit::internal, "pooling got channels that are not contiguous");
  if (task.pass != model::Pass::forward) return make_pool_backward(task, threads);
  if (is_global_average(task)) return make_global_pool_forward(task, threads);
  if (task.kind == model::PoolKind::average) return make_average_pool_forward(task, threads);
  return make_pool_forward(task, threads);
}

}  // namespace orthant::kernels::pool
