#include "orthant/tensor/shape.hpp"

#include "orthant/base/checked.hpp"

#include "orthant/base/format.hpp"

namespace orthant::tensor {

const char* name_of(Dim dim) {
  static constexpr std::array<const char*, 5> names{"n", "c", "d", "h", "w"};
  return names.at(static_cast<std::size_t>(dim));
}

std::int64_t volume(const Shape& shape) { return base::checked_product({shape.n, shape.c, shape.d, shape.h, shape.w}); }

std::int64_t pixels(const Shape& shape) { return base::checked_product({shape.n, shape.d, shape.h, shape.w}); }

Extent3 spatial(const Shape& shape) { return {shape.d, shape.h, shape.w}; }

std::string to_text(const Shape& shape, int spatial_count) {
  std::string text = fmt::format("{}x{}", shape.n, shape.c);
  for (const Dim dim : named_dims(spatial_count)) text += fmt::format("x{}", shape[dim]);
  return text;
}

}  // namespace orthant::tensor
