#include "orthant/tensor/window_boxes.hpp"

#include <algorithm>

namespace orthant::tensor {
namespace {

/// Division that rounds down; `b` is positive.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

}  // namespace

Box cells_read(const Window& window, const Box& box, const Shape& src, const Shape& dst) {
  if (is_empty(box)) return {};
  Box read = box;
  for (const Dim dim : spatial_dims) {
    const std::int64_t stride = window.stride[dim];
    const std::int64_t pad = window.pad_lo[dim];
    const std::int64_t last = (box.hi[dim] - 1) * stride - pad + reach(window, dim);
    const std::int64_t next = box.hi[dim] == dst[dim] ? src[dim] : box.hi[dim] * stride - pad;
    read.lo[dim] = std::clamp<std::int64_t>(box.lo[dim] * stride - pad, 0, src[dim]);
    read.hi[dim] = std::clamp<std::int64_t>(std::max(last, next), read.lo[dim], src[dim]);
  }
  return is_empty(read) ? Box{} : read;
}

Box cells_reading(const Window& window, const Box& box, const Shape& dst) {
  if (is_empty(box)) return {};
  Box reading = box;
  for (const Dim dim : spatial_dims) {
    const std::int64_t stride = window.stride[dim];
    const std::int64_t pad = window.pad_lo[dim];
    const std::int64_t lowest = ceil_div(box.lo[dim] + pad - reach(window, dim) + 1, stride);
    const std::int64_t before = floor_div(box.lo[dim] + pad, stride);
    const std::int64_t highest = floor_div(box.hi[dim] - 1 + pad, stride);
    reading.lo[dim] = std::clamp<std::int64_t>(std::min(lowest, before), 0, dst[dim] - 1);
    reading.hi[dim] = std::clamp<std::int64_t>(highest + 1, reading.lo[dim] + 1, dst[dim]);
  }
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
