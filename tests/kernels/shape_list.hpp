#pragma once

#include "orthant/tensor/window.hpp"

#include <string>
#include <vector>

namespace orthant::test {

/// One line of a shape list: words of a letter and a number, in any order, missing ones are 1 (paddings 0):
///   n samples, c channels of src, f filters, g groups, i input extents, k kernel, s stride, l dilation,
///   p padding below, q padding above (as p if missing).
/// Spatial values are DxHxW, or one number for all three. "max", "average" and "average_inside" (padding does not
/// count) are kinds of pooling. The rest of a line after '#' is a remark.
struct ShapeLine {
  std::string text;
  std::int64_t n = 1, c = 1, f = 1, g = 1;
  tensor::Extent3 input = tensor::cube(1);
  tensor::Window window;
  std::string kind;
};

/// One of ORTHANT_TEST_EVERY lines where that is set. Throws Error naming the file and the line if a word is not
/// understood.
std::vector<ShapeLine> read_shapes(const std::string& file);

tensor::Shape src_shape(const ShapeLine& line);
/// The shape after the window, with f channels.
tensor::Shape dst_shape(const ShapeLine& line);

}  // namespace orthant::test
