#pragma once

#include "orthant/model/task.hpp"

#include <algorithm>

namespace orthant::kernels::matrix {

/// A convolution as a matrix product of pixels per tap. Pixels of dst are counted line by line.
struct Patches {
  tensor::Layout src, dst;
  tensor::Window window;
  bool flat = false;  ///< all pixels are one line
  std::int64_t lines = 0;
  std::int64_t line_pixels = 0;
  std::int64_t src_step = 0;  ///< from pixel to pixel of a line
  std::int64_t dst_step = 0;

  [[nodiscard]] std::int64_t pixels() const { return lines * line_pixels; }
  [[nodiscard]] std::int64_t taps() const { return tensor::taps(window); }
  /// Offsets of a line's first pixel. That of src may lie outside.
  [[nodiscard]] std::int64_t src_offset(std::int64_t line, std::int64_t tap) const;
  [[nodiscard]] std::int64_t dst_offset(std::int64_t line) const;
  /// The pixels of a line whose cell of src under a tap lies inside.
  [[nodiscard]] tensor::Range inside(std::int64_t line, std::int64_t tap) const;

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

 private:
  /// Of a line: its first pixel, and the cell of src that it has under a tap.
  [[nodiscard]] tensor::Shape first_pixel(std::int64_t line) const;
  [[nodiscard]] tensor::Shape first_cell(std::int64_t line, std::int64_t tap) const;
};

/// True if a task can be run as matrix products: a gradient of weights with any window, other passes where windows do
/// not overlap (1x1, or strides of at least the window) and are not padded.
bool applies(const model::ConvTask& task);
Patches patches_of(const model::ConvTask& task);

/// True if every cell of src lies under some tap.
bool covers_src(const Patches& patches);
/// Zeroes the cells under no tap, in part `index` of `parts` of the rows of src.
void zero_uncovered(const Patches& patches, float* src, int index, int parts);

}  // namespace orthant::kernels::matrix
