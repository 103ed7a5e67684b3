#pragma once

#include "orthant/tensor/layout.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::data::arrays {

/// The dim that each axis of an array in a file stands for: n comes first, if there is one, and channels come first or
/// last of the others.
using Axes = std::vector<tensor::Dim>;

/// "NDHWC"; "" for a single number.
std::string to_text(const Axes& axes);
/// Nothing unless the text is one of [N]DHWC, [N]CDHW, [N]HWC, [N]CHW, [N]WC, [N]CW, [N]DHW, [N]HW, [N]W.
std::optional<Axes> parse_axes(const std::string& text);

/// The extents by dim; dims without an axis have one cell.
tensor::Shape shape_of(const std::vector<std::int64_t>& extents, const Axes& axes);
/// The layout of an array of that shape.
tensor::Layout layout_of(const tensor::Shape& shape, const Axes& axes);

/// The tensor of one sample (n is ignored) that an array should hold, in 1 to 3 spatial dims.
struct AxesWanted {
  tensor::Shape shape;
  int spatial_count = 3;
};

/// All orders of axes in which an array of these extents holds one or more such tensors. Orders that are the same in
/// memory are listed once.
std::vector<Axes> matching_axes(const std::vector<std::int64_t>& extents, const AxesWanted& wanted);
/// "4x16x16x16" in the order of dims c d h w.
std::string to_text(const AxesWanted& wanted);
/// "CxDxHxW", "CxHxW" or "CxW".
std::string dims_text(int spatial_count);

}  // namespace orthant::data::arrays
