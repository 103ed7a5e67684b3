#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::tensor {
namespace {

/// Division that rounds down; `b` is positive.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

}  // namespace

Range cells_read(const Window& window, Dim dim, const Range& range, const Shape& src, const Shape& dst) {
  const std::int64_t stride = window.stride[dim];
  const std::int64_t pad = window.pad_lo[dim];
  const std::int64_t last = (range.hi - 1) * stride - pad + reach(window, dim);
  const std::int64_t next = range.hi == dst[dim] ? src[dim] : range.hi * stride - pad;
  const std::int64_t lo = std::clamp<std::int64_t>(range.lo * stride - pad, 0, src[dim]);
  return {lo, std::clamp<std::int64_t>(std::max(last, next), lo, src[dim])};
}

Box cells_read(const Window& window, const Box& box, const Shape& src, const Shape& dst) {
  if (is_empty(box)) return {};
  Box read = box;
  for (const Dim dim : spatial_dims) read.set(dim, cells_read(window, dim, box[dim], src, dst));
  return is_empty(read) ? Box{} : read;
}

Range cells_reading(const Window& window, Dim dim, const Range& range, const Shape& dst) {
  const std::int64_t stride = window.stride[dim];
  const std::int64_t pad = window.pad_lo[dim];
  const std::int64_t lowest = ceil_div(range.lo + pad - reach(window, dim) + 1, stride);
  const std::int64_t before = floor_div(range.lo + pad, stride);
  const std::int64_t highest = floor_div(range.hi - 1 + pad, stride);
  const std::int64_t lo = std::clamp<std::int64_t>(std::min(lowest, before), 0, dst[dim] - 1);
  return {lo, std::clamp<std::int64_t>(highest + 1, lo + 1, dst[dim])};
}

Box cells_reading(const Window& window, const Box& box, const Shape& dst) {
  if (is_empty(box)) return {};
  Box reading = box;
  for (const Dim dim : spatial_dims) reading.set(dim, cells_reading(window, dim, box[dim], dst));
  return reading;
}

std::int64_t halo_read(const Window& window, Dim dim) {
  return std::max(window.pad_lo[dim], reach(window, dim) - window.stride[dim] - window.pad_lo[dim]);
}

std::int64_t halo_reading(const Window& window, Dim dim) { return (reach(window, dim) - 1) / window.stride[dim]; }

Window local_window(const Window& window, const Box& src, const Box& dst) {
  Window local = window;
  for (const Dim dim : spatial_dims) {
    const std::int64_t stride = window.stride[dim];
    local.pad_lo[dim] = window.pad_lo[dim] + src.lo[dim] - dst.lo[dim] * stride;
    const std::int64_t end = (dst.hi[dim] - 1) * stride - window.pad_lo[dim] + reach(window, dim);
    local.pad_hi[dim] = std::max<std::int64_t>(0, end - src.hi[dim]);
  }
  return local;
}

}  // namespace orthant::tensor
