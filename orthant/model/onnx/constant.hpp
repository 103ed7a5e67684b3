#pragma once

#include "orthant/model/onnx/value.hpp"

#include <optional>
#include <string_view>

namespace orthant::model::onnx {

/// Items of the largest constant that is computed while a file is read.
inline constexpr std::int64_t most_folded_items = std::int64_t{1} << 22;
/// Dims of tensors; no layer has so many.
inline constexpr std::size_t most_dims = 16;

Extents row_major(const Extents& extents);
Constant constant_of(const Tensor& tensor, bool is_node);
Constant constant_of(ItemType type, Extents extents, std::vector<double> numbers);
Constant integers(const Extents& values);

/// True if it is a tensor of floats that has the name of a parameter: exporters give other names to their constants.
bool is_parameter(const Constant& constant);
/// Its name in the file.
const std::string& name_of(const Constant& constant);
/// True for names that exporters give to constants that are nobody's parameters. "blocks.0.weight" is somebody's.
bool is_made_up(std::string_view name);
/// The parameter that it is or was computed from; empty if there is none.
std::string parameter_name(const Constant& constant);

/// All items in row-major order. Throws Error if there are more than `most_folded_items`.
std::vector<double> numbers_of(const Constant& constant);
/// The same as whole numbers; those beyond 2^62 become 2^62.
Extents integers_of(const Constant& constant);
/// The number, if all items are equal.
std::optional<double> single_number(const Constant& constant);

/// The same items with other extents. A view stays a view where strides allow it.
Constant reshaped(const Constant& constant, const Extents& extents);
Constant transposed(const Constant& constant, const std::vector<int>& permutation);

/// The target of a Reshape: 0 copies an extent (unless `allow_zero`), -1 stands for the rest. Throws Error if the
/// items do not fit.
Extents reshape_target(const Extents& extents, const Extents& target, bool allow_zero);
/// A dim that may count from the end. Throws Error if it is outside.
int dim_of(std::int64_t dim, std::size_t rank);

}  // namespace orthant::model::onnx
