#pragma once

#include "orthant/model/task.hpp"

#include <algorithm>

namespace orthant::kernels::matrix {

/// A convolution whose windows do not overlap (1x1, or strides of at least the window): every tap is a matrix product
/// of pixels. Pixels of dst are counted line by line.
struct Patches {
  tensor::Layout src, dst;
  tensor::Window window;
  std::int64_t lines = 0;
  std::int64_t line_pixels = 0;
  std::int64_t src_step = 0;  ///< from pixel to pixel of a line
  std::int64_t dst_step = 0;

  [[nodiscard]] std::int64_t pixels() const { return lines * line_pixels; }
  [[nodiscard]] std::int64_t taps() const { return tensor::taps(window); }
  /// Offsets of a line's first pixel.
  [[nodiscard]] std::int64_t src_offset(std::int64_t line, std::int64_t tap) const;
  [[nodiscard]] std::int64_t dst_offset(std::int64_t line) const;

  /// Calls visit(line, first pixel of the line, count) for the pixels [begin, end).
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit visit) const {
    while (begin < end) {
      const std::int64_t line = begin / line_pixels;
      const std::int64_t first = begin % line_pixels;
      const std::int64_t count = std::min(line_pixels - first, end - begin);
      visit(line, first, count);
      begin += count;
    }
  }
};

/// True if a task can be run as matrix products.
bool applies(const model::ConvTask& task);
Patches patches_of(const model::ConvTask& task);

/// True if every cell of src lies under some tap.
bool covers_src(const Patches& patches);
/// Zeroes the cells under no tap, in part `index` of `parts` of the rows of src.
void zero_uncovered(const Patches& patches, float* src, int index, int parts);

}  // namespace orthant::kernels::matrix
