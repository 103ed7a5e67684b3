#pragma once

#include "orthant/tensor/layout.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::data::arrays {

/// Which dim each axis of an array in a file is: n first if there, then channels last or first.
using Axes = std::vector<tensor::Dim>;

/// "NDHWC"; "" for a single number.
std::string to_text(const Axes& axes);
/// Nothing unless the text is one of [N]DHWC, [N]CDHW, [N]HWC, [N]CHW, [N]DHW, [N]HW.
std::optional<Axes> parse_axes(const std::string& text);

/// The extents by dim; dims without an axis have one cell.
tensor::Shape shape_of(const std::vector<std::int64_t>& extents, const Axes& axes);
/// Where the items of an array of that shape lie.
tensor::Layout layout_of(const tensor::Shape& shape, const Axes& axes);

/// What an array is to be: a tensor of one sample (n is ignored), in 2 or 3 spatial dims.
struct AxesWanted {
  tensor::Shape shape;
  int spatial_count = 3;
};

/// Every way in which an array of these extents holds one or more such tensors; ways that are the same in memory
/// count once.
std::vector<Axes> matching_axes(const std::vector<std::int64_t>& extents, const AxesWanted& wanted);
/// "4x16x16x16" in the order of dims c d h w.
std::string to_text(const AxesWanted& wanted);

}  // namespace orthant::data::arrays
