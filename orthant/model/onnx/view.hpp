#pragma once

#include "orthant/model/onnx/value.hpp"

#include <optional>
#include <vector>

namespace orthant::model::onnx {

/// The axes of a tensor of `rank` dims as convolutions have them: n, c, then the last of d, h, w.
std::vector<tensor::Dim> axes_of_rank(int rank);

/// All of an axis; nothing if it has one cell.
Atoms whole_axis(const tensor::Shape& shape, tensor::Dim axis);

/// The result of an item as n x c x space, with `rank` dims.
View plain_view(int item, const tensor::Shape& shape, int rank);

std::int64_t extent_of(const Atoms& atoms);
Extents extents_of(const View& view);

/// Neighbours that continue each other become one.
void join(Atoms& atoms);

/// The same items in the same order with other extents; nothing if an atom would have to be cut where it does not
/// divide. The numbers of items are equal.
std::optional<View> reshaped(const View& view, const Extents& extents);

/// Dim i of the result is dim permutation[i].
View transposed(const View& view, const std::vector<int>& permutation);

}  // namespace orthant::model::onnx
