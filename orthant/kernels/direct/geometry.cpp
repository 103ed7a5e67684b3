#include "orthant/kernels/direct/geometry.hpp"
#include "orthant/kernels/rounding.hpp"

#include <algorithm>

namespace orthant::kernels::direct {
namespace {

using tensor::Dim;

Axis forward_axis(const model::ConvTask& task, Dim dim) {
  Axis axis{.count = task.dst.extents[dim], .src_step = task.window.stride[dim], .src_extent = task.src.extents[dim]};
  for (std::int64_t k = 0; k < task.window.size[dim]; ++k) {
    axis.taps.push_back({.index = k, .offset = k * task.window.dilation[dim] - task.window.pad_lo[dim]});
  }
  return axis;
}

// Cells x of src with (x + pad) % stride == phase; tap k reads cell (x + pad - k * dilation) / stride of dst.
Axis backward_axis(const model::ConvTask& task, Dim dim, std::int64_t phase) {
  const std::int64_t stride = task.window.stride[dim];
  const std::int64_t pad = task.window.pad_lo[dim];
  const std::int64_t extent = task.src.extents[dim];
  const std::int64_t first = ((phase - pad) % stride + stride) % stride;
  Axis axis{.first = first,
            .step = stride,
            .count = extent > first ? ceil_div(extent - first, stride) : 0,
            .src_step = 1,
            .src_extent = task.dst.extents[dim]};
  for (std::int64_t k = task.window.size[dim] - 1; k >= 0; --k) {
    const std::int64_t distance = first + pad - k * task.window.dilation[dim];
    if (distance % stride == 0) axis.taps.push_back({.index = k, .offset = distance / stride});
  }
  return axis;
}

// To a window of one cell without stride or padding, all pixels are one long row.
void flatten_pixels(Correlation& correlation) {
  const bool single = [&] {
    for (const Axis* axis : {&correlation.d, &correlation.h, &correlation.w}) {
      if (axis->taps.size() != 1 || axis->taps[0].offset != 0 || axis->step != 1 || axis->src_step != 1) return false;
      if (axis->count != axis->src_extent) return false;
    }
    return tensor::is_pixel_list(correlation.src) && tensor::is_pixel_list(correlation.dst);
  }();
  if (!single) return;
  correlation.w.count = correlation.w.src_extent = tensor::pixels(correlation.dst.extents);
  for (Axis* axis : {&correlation.d, &correlation.h}) axis->count = axis->src_extent = 1;
  for (tensor::Layout* layout : {&correlation.src, &correlation.dst}) {
    layout->extents = {.n = 1, .c = layout->extents.c, .d = 1, .h = 1, .w = correlation.w.count};
  }
}

// Without taps along d, samples can be treated as planes of one deep sample, so that a unit can hold several.
void join_samples(Correlation& correlation) {
  const Axis& d = correlation.d;
  const bool flat = d.count == 1 && d.src_extent == 1 && d.taps.size() == 1 && d.taps[0].offset == 0 && d.first == 0;
  if (!flat) return;
  correlation.d.count = correlation.d.src_extent = correlation.dst.extents.n;
  correlation.d.step = correlation.d.src_step = 1;
  for (tensor::Layout* layout : {&correlation.src, &correlation.dst}) {
    layout->extents.d = layout->extents.n;
    layout->strides.d = layout->strides.n;
    layout->extents.n = 1;
  }
}

std::int64_t reach(const Axis& axis, std::int64_t outputs) {
  const Range cells = cells_read(axis, {0, outputs});
  return cells.hi - cells.lo;
}

}  // namespace

Range taps_inside(const Axis& axis, std::int64_t t) {
  Range range{0, static_cast<std::int64_t>(axis.taps.size())};
  const std::int64_t moved = t * axis.src_step;
  while (range.lo < range.hi && axis.taps[range.lo].offset + moved < 0) ++range.lo;
  while (range.lo < range.hi && axis.taps[range.hi - 1].offset + moved >= axis.src_extent) --range.hi;
  return range;
}

Range outputs_inside(const Axis& axis, const Tap& tap, Range outputs) {
  while (outputs.lo < outputs.hi && tap.offset + outputs.lo * axis.src_step < 0) ++outputs.lo;
  while (outputs.lo < outputs.hi && tap.offset + (outputs.hi - 1) * axis.src_step >= axis.src_extent) --outputs.hi;
  return outputs;
}

Range cells_read(const Axis& axis, Range outputs) {
  if (axis.taps.empty() || outputs.lo >= outputs.hi) return {};
  return {axis.taps.front().offset + outputs.lo * axis.src_step,
          axis.taps.back().offset + (outputs.hi - 1) * axis.src_step + 1};
}

std::int64_t taps(const Correlation& correlation) {
  return static_cast<std::int64_t>(correlation.d.taps.size() * correlation.h.taps.size() * correlation.w.taps.size());
}

Correlation forward_correlation(const model::ConvTask& task) {
  Correlation correlation{.d = forward_axis(task, Dim::d),
                          .h = forward_axis(task, Dim::h),
                          .w = forward_axis(task, Dim::w),
                          .src = task.src,
                          .dst = task.dst,
                          .groups = task.groups,
                          .in = task.src.extents.c / task.groups,
                          .out = task.dst.extents.c / task.groups,
                          .window = task.window.size};
  flatten_pixels(correlation);
  join_samples(correlation);
  return correlation;
}

std::vector<Correlation> backward_data_correlations(const model::ConvTask& task) {
  std::vector<Correlation> correlations;
  const tensor::Extent3 stride = task.window.stride;
  for (std::int64_t phase = 0; phase < stride.d * stride.h * stride.w; ++phase) {
    Correlation correlation{.d = backward_axis(task, Dim::d, phase / stride.w / stride.h),
                            .h = backward_axis(task, Dim::h, phase / stride.w % stride.h),
                            .w = backward_axis(task, Dim::w, phase % stride.w),
                            .src = task.dst,
                            .dst = task.src,
                            .groups = task.groups,
                            .in = task.dst.extents.c / task.groups,
                            .out = task.src.extents.c / task.groups,
                            .window = task.window.size,
                            .transposed = true};
    flatten_pixels(correlation);
    join_samples(correlation);
    if (correlation.d.count * correlation.h.count * correlation.w.count > 0)
      correlations.push_back(std::move(correlation));
  }
  return correlations;
}

std::int64_t block_count(const Correlation& correlation, const Blocks& blocks) {
  return correlation.dst.extents.n * correlation.groups * ceil_div(correlation.d.count, blocks.d) *
         ceil_div(correlation.h.count, blocks.h) * ceil_div(correlation.w.count, blocks.w);
}

tensor::Extent3 block_cells(const Correlation& correlation, const Blocks& blocks) {
  return {
      .d = reach(correlation.d, blocks.d), .h = reach(correlation.h, blocks.h), .w = reach(correlation.w, blocks.w)};
}

Blocks choose_blocks(const Correlation& correlation, std::int64_t units, bool outputs_again) {
  // The source cells of a unit should stay in the second-level cache, and enough outputs should share a panel of
  // weights.
  constexpr std::int64_t source_floats = 96 * 1024;
  constexpr std::int64_t output_floats = 128 * 1024;
  constexpr std::int64_t enough_outputs = 256;
  constexpr std::int64_t widest = 512, narrowest = 64;
  const auto fits = [&](const Blocks& blocks, std::int64_t limit) {
    const tensor::Extent3 cells = block_cells(correlation, blocks);
    const std::int64_t outputs = blocks.d * blocks.h * blocks.w;
    return cells.d * cells.h * cells.w * correlation.in <= limit &&
           (!outputs_again || outputs <= enough_outputs || outputs * correlation.out <= output_floats);
  };
  Blocks blocks{
      .d = 1, .h = std::max<std::int64_t>(correlation.h.count, 1), .w = std::max<std::int64_t>(correlation.w.count, 1)};
  for (std::int64_t cuts = 2; blocks.w > widest; ++cuts) blocks.w = ceil_div(correlation.w.count, cuts);
  for (std::int64_t cuts = 2; blocks.h > 1 && !fits(blocks, source_floats); ++cuts)
    blocks.h = ceil_div(correlation.h.count, cuts);
  while (blocks.w > 2 * narrowest && !fits(blocks, source_floats)) blocks.w = ceil_div(blocks.w, 2);
  for (std::int64_t cuts = 2; block_count(correlation, blocks) < units && blocks.h > 1 &&
                              ceil_div(correlation.h.count, cuts) * blocks.w >= enough_outputs;
       ++cuts) {
    blocks.h = ceil_div(correlation.h.count, cuts);
  }
  while (blocks.d < correlation.d.count && blocks.d * blocks.h * blocks.w < enough_outputs) {
    Blocks deeper = blocks;
    ++deeper.d;
    if (!fits(deeper, 2 * source_floats) || block_count(correlation, deeper) < units) break;
    blocks = deeper;
  }
  return blocks;
}

std::int64_t outputs(const Correlation& correlation) {
  return correlation.d.count * correlation.h.count * correlation.w.count;
}

Unit unit_at(const Correlation& correlation, const Blocks& blocks, std::int64_t index) {
  const auto next = [&index](std::int64_t count, std::int64_t block) {
    const std::int64_t cuts = ceil_div(count, block);
    const std::int64_t lo = index % cuts * block;
    index /= cuts;
    return Range{lo, std::min(lo + block, count)};
  };
  Unit unit;
  unit.d = next(correlation.d.count, blocks.d);
  unit.h = next(correlation.h.count, blocks.h);
  unit.w = next(correlation.w.count, blocks.w);
  unit.group = next(correlation.groups, 1).lo;
  unit.n = index;
  return unit;
}

}  // namespace orthant::kernels::direct
