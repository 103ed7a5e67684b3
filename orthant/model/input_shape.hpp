#pragma once

#include "orthant/tensor/shape.hpp"

#include <string>
#include <string_view>

namespace orthant::model {

/// The shape of a network's source and how many spatial dims its user named.
struct InputShape {
  tensor::Shape shape;
  int spatial_count = 3;
  bool operator==(const InputShape&) const = default;
};

/// "4x128x128x128" (CxDxHxW), "3x224x224" (CxHxW) or "2x4096" (CxW). Throws Error(usage) with a remedy for anything
/// else.
InputShape parse_input(std::string_view text, std::int64_t mini_batch);

/// The inverse, without n: "4x128x128x128".
std::string input_text(const InputShape& input);

/// Throws Error if a mini-batch is not in 1 ... 2^31 - 1.
void check_mini_batch(std::int64_t mini_batch);

}  // namespace orthant::model
