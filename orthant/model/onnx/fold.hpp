#pragma once

#include "orthant/model/onnx/constant.hpp"

#include <optional>
#include <vector>

namespace orthant::model::onnx {

/// What a node computes from constants; nothing if the op is not known here. Inputs that the node leaves out are null.
/// Throws Error for what does not fit, or would be too large.
std::optional<std::vector<Constant>> fold(const OpNode& node, const std::vector<const Constant*>& inputs,
                                          std::int64_t opset);

/// The value of a Constant node.
Constant constant_of_node(const OpNode& node);

/// An input of a node, which must be there; and whether it is there.
const Constant& input(const std::vector<const Constant*>& inputs, std::size_t index);
bool given(const std::vector<const Constant*>& inputs, std::size_t index);
/// Axes of a node, which are an attribute in older files and an input in newer ones.
std::optional<Extents> axes_of(const OpNode& node, const std::vector<const Constant*>& inputs, std::size_t input);
/// Extents without, and with, dims of one cell.
Extents squeezed(const Extents& extents, const std::optional<Extents>& axes);
Extents unsqueezed(const Extents& extents, const Extents& axes);

/// What Slice takes along a dim.
struct Cut {
  int dim = 0;
  std::int64_t first = 0, count = 0, step = 1;
};
std::vector<Cut> cuts_of(const OpNode& node, const std::vector<const Constant*>& inputs, const Extents& extents);
/// The sizes of the parts that Split makes.
Extents parts_of_split(const OpNode& node, const Constant* sizes, std::int64_t extent);

}  // namespace orthant::model::onnx
