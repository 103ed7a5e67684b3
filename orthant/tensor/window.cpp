#include "orthant/tensor/window.hpp"

#include "orthant/base/checked.hpp"

namespace orthant::tensor {
namespace {

using base::checked_add;
using base::checked_mul;
using base::Exit;
using base::fail;

void check_at_least(const char* what, const Extent3& values, std::int64_t least) {
  for (const Dim dim : spatial_dims) {
    if (values[dim] < least)
      fail(Exit::bad_data, "{} is {} in dim {}; it must be at least {}", what, values[dim], name_of(dim), least);
  }
}

}  // namespace

std::int64_t taps(const Window& window) { return base::checked_product({window.size.d, window.size.h, window.size.w}); }

std::int64_t reach(const Window& window, Dim dim) {
  return checked_add(checked_mul(window.size[dim] - 1, window.dilation[dim]), 1);
}

void check(const Window& window) {
  check_at_least("kernel size", window.size, 1);
  check_at_least("stride", window.stride, 1);
  check_at_least("dilation", window.dilation, 1);
  check_at_least("padding", window.pad_lo, 0);
  check_at_least("padding", window.pad_hi, 0);
}

std::int64_t window_output(const Window& window, Dim dim, std::int64_t extent) {
  const std::int64_t padded = checked_add(checked_add(extent, window.pad_lo[dim]), window.pad_hi[dim]);
  const std::int64_t needed = reach(window, dim);
  if (padded < needed) {
    fail(Exit::bad_data,
         "the kernel reaches over {} cells in dim {} but the padded input has {}; use a smaller kernel, more padding "
         "or a larger input",
         needed, name_of(dim), padded);
  }
  return (padded - needed) / window.stride[dim] + 1;
}

Extent3 window_output(const Window& window, const Extent3& extents) {
  Extent3 result;
  for (const Dim dim : spatial_dims) result[dim] = window_output(window, dim, extents[dim]);
  return result;
}

Extent3 transposed_output(const Window& window, const Extent3& extents, const Extent3& extra) {
  Extent3 result;
  for (const Dim dim : spatial_dims) {
    const std::int64_t full = checked_add(checked_mul(extents[dim] - 1, window.stride[dim]), reach(window, dim));
    result[dim] = checked_add(checked_add(checked_add(full, extra[dim]), -window.pad_lo[dim]), -window.pad_hi[dim]);
    if (extra[dim] < 0 || extra[dim] >= std::max(window.stride[dim], window.dilation[dim])) {
      fail(Exit::bad_data,
           "output padding is {} in dim {}; it must be at least 0 and smaller than the stride or the dilation",
           extra[dim], name_of(dim));
    }
    if (result[dim] < 1)
      fail(Exit::bad_data, "the padding leaves no output in dim {}; use less padding or a larger input", name_of(dim));
  }
  return result;
}

}  // namespace orthant::tensor
