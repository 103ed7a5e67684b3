#pragma once

#include "orthant/model/onnx/importer.hpp"

#include <optional>

namespace orthant::model::onnx {

/// Layers that exporters spell out in small ops, found where the last of these is made.
struct Patterns {
  Importer& in;

  /// SiLU, hard swish, GELU, drop path, or a normalisation that multiplies by a reciprocal.
  std::optional<int> product(int a, int b) const;
  /// A normalisation.
  std::optional<int> quotient(int a, int b) const;

 private:
  [[nodiscard]] std::optional<int> gated(int x, int gate, double factor) const;
  [[nodiscard]] bool is_random(int item) const;
  [[nodiscard]] std::vector<tensor::Dim> mean_axes(int item) const;
  [[nodiscard]] std::optional<int> normed(int centred, int deviation) const;
};

}  // namespace orthant::model::onnx
