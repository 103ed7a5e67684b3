#include "orthant/kernels/pool.hpp"

#include "orthant/base/error.hpp"
#include "orthant/kernels/factories.hpp"

#include <algorithm>

namespace orthant::kernels {

using tensor::Dim;

TapRange PoolDim::clipped_taps(std::int64_t o) const {
  const std::int64_t first = first_input(o);
  const std::int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const std::int64_t end = first >= src ? 0 : std::min(size, (src - 1 - first) / dilation + 1);
  return {.begin = begin, .end = std::max(begin, end)};
}

PoolDim pool_dim(const model::PoolTask& task, Dim dim) {
  const tensor::Window& window = task.window;
  return {.src = task.src.extents[dim],
          .dst = task.dst.extents[dim],
          .size = window.size[dim],
          .stride = window.stride[dim],
          .dilation = window.dilation[dim],
          .pad = window.pad_lo[dim]};
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
  const tensor::Extent3 none = tensor::cube(0);
  return task.count_include_pad || (task.window.pad_lo == none && task.window.pad_hi == none);
}

bool is_global_average(const model::PoolTask& task) {
  const tensor::Shape& dst = task.dst.extents;
  const tensor::Window& window = task.window;
  return task.kind == model::PoolKind::average && dst.d * dst.h * dst.w == 1 &&
         window.size == tensor::spatial(task.src.extents) && window.dilation == tensor::cube(1) &&
         window.pad_lo == tensor::cube(0);
}

std::unique_ptr<Primitive> make_pool(const model::PoolTask& task, int threads) {
  const bool contiguous = task.src.extents.c <= 1 || (task.src.strides.c == 1 && task.dst.strides.c == 1);
  if (!contiguous) base::fail(base::Exit::internal, "pooling got channels that are not contiguous");
  if (task.pass != model::Pass::forward) return make_pool_backward(task, threads);
  if (is_global_average(task)) return make_global_pool_forward(task, threads);
  if (task.kind == model::PoolKind::average) return make_average_pool_forward(task, threads);
  return make_pool_forward(task, threads);
}

}  // namespace orthant::kernels
