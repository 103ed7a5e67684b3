#include "orthant/kernels/matrix/patches.hpp"

#include "orthant/kernels/rounding.hpp"
#include "orthant/kernels/team.hpp"

namespace orthant::kernels::matrix {
namespace {

using tensor::Dim;

/// Every cell of src lies under one tap at most, and every tap on a cell.
bool is_disjoint(const model::ConvTask& task) {
  return std::all_of(tensor::spatial_dims.begin(), tensor::spatial_dims.end(), [&](Dim dim) {
    const std::int64_t size = task.window.size[dim];
    const std::int64_t end = (task.dst.extents[dim] - 1) * task.window.stride[dim] + size;
    return task.window.pad_lo[dim] == 0 && end <= task.src.extents[dim] &&
           (size == 1 || (size <= task.window.stride[dim] && task.window.dilation[dim] == 1));
  });
}

bool is_flat(const model::ConvTask& task) {
  return tensor::taps(task.window) == 1 && task.window.stride == tensor::cube(1) && is_disjoint(task) &&
         tensor::spatial(task.src.extents) == tensor::spatial(task.dst.extents) && tensor::is_pixel_list(task.src) &&
         tensor::is_pixel_list(task.dst);
}

std::int64_t offset_of(const tensor::Layout& layout, const tensor::Shape& cell) {
  return tensor::box_of(layout, {.lo = cell, .hi = cell}).offset;
}

bool is_covered(const Patches& patches, Dim dim, std::int64_t cell) {
  const std::int64_t stride = patches.window.stride[dim];
  return cell / stride < patches.dst.extents[dim] && cell % stride < patches.window.size[dim];
}

}  // namespace

tensor::Shape Patches::first_pixel(std::int64_t line) const {
  return {.n = line / dst.extents.h / dst.extents.d,
          .c = 0,
          .d = line / dst.extents.h % dst.extents.d,
          .h = line % dst.extents.h,
          .w = 0};
}

tensor::Shape Patches::first_cell(std::int64_t line, std::int64_t tap) const {
  const tensor::Extent3 taps{
      .d = tap / window.size.w / window.size.h, .h = tap / window.size.w % window.size.h, .w = tap % window.size.w};
  tensor::Shape cell = first_pixel(line);
  for (const Dim dim : tensor::spatial_dims)
    cell[dim] = cell[dim] * window.stride[dim] + taps[dim] * window.dilation[dim] - window.pad_lo[dim];
  return cell;
}

std::int64_t Patches::dst_offset(std::int64_t line) const { return offset_of(dst, first_pixel(line)); }

std::int64_t Patches::src_offset(std::int64_t line, std::int64_t tap) const {
  return offset_of(src, first_cell(line, tap));
}

tensor::Range Patches::inside(std::int64_t line, std::int64_t tap) const {
  if (flat) return {0, line_pixels};
  const tensor::Shape cell = first_cell(line, tap);
  if (cell.d < 0 || cell.d >= src.extents.d || cell.h < 0 || cell.h >= src.extents.h) return {};
  // The pixels before the first cell of src, and those before its end.
  const auto before = [&](std::int64_t end) {
    return std::clamp<std::int64_t>(ceil_div(std::max<std::int64_t>(end - cell.w, 0), window.stride.w), 0, line_pixels);
  };
  return {before(0), before(src.extents.w)};
}

bool applies(const model::ConvTask& task) {
  if (task.pass != model::Pass::backward_weights && !is_disjoint(task)) return false;
  const auto packed = [](const tensor::Layout& layout) { return layout.extents.c == 1 || layout.strides.c == 1; };
  return task.groups == 1 && tensor::pixels(task.dst.extents) > 0 && packed(task.src) && packed(task.dst);
}

Patches patches_of(const model::ConvTask& task) {
  Patches patches{.src = task.src, .dst = task.dst, .window = task.window, .flat = is_flat(task)};
  patches.line_pixels = patches.flat ? tensor::pixels(task.dst.extents) : task.dst.extents.w;
  patches.lines = tensor::pixels(task.dst.extents) / patches.line_pixels;
  patches.src_step = task.src.strides.w * task.window.stride.w;
  patches.dst_step = task.dst.strides.w;
  return patches;
}

bool covers_src(const Patches& patches) {
  return std::all_of(tensor::spatial_dims.begin(), tensor::spatial_dims.end(), [&](Dim dim) {
    return patches.window.size[dim] == patches.window.stride[dim] &&
           patches.dst.extents[dim] * patches.window.stride[dim] == patches.src.extents[dim];
  });
}

void zero_uncovered(const Patches& patches, float* src, int index, int parts) {
  const tensor::Shape& extents = patches.src.extents;
  const tensor::Shape& strides = patches.src.strides;
  const std::int64_t rows = extents.n * extents.d * extents.h;
  for (std::int64_t row = share(rows, index, parts); row < share(rows, index + 1, parts); ++row) {
    const std::int64_t h = row % extents.h;
    const std::int64_t d = row / extents.h % extents.d;
    const std::int64_t n = row / extents.h / extents.d;
    const bool covered = is_covered(patches, Dim::d, d) && is_covered(patches, Dim::h, h);
    float* first = src + patches.src.offset + n * strides.n + d * strides.d + h * strides.h;
    for (std::int64_t w = 0; w < extents.w; ++w) {
      if (!covered || !is_covered(patches, Dim::w, w)) std::fill_n(first + w * strides.w, extents.c, 0.0F);
    }
  }
}

}  // namespace orthant::kernels::matrix
