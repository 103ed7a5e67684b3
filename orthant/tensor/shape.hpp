#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace orthant::tensor {

/// The dims of a tensor: samples, channels, depth, height, width.
enum class Dim : int { n, c, d, h, w };
inline constexpr std::array<Dim, 5> all_dims{Dim::n, Dim::c, Dim::d, Dim::h, Dim::w};
inline constexpr std::array<Dim, 3> spatial_dims{Dim::d, Dim::h, Dim::w};
const char* name_of(Dim dim);

/// The dims that a network of so many spatial dims names (w; h w; d h w), and the others, which have one cell.
inline std::span<const Dim> named_dims(int spatial_count) {
  return std::span(spatial_dims).last(static_cast<std::size_t>(spatial_count));
}
inline std::span<const Dim> flat_dims(int spatial_count) {
  return std::span(spatial_dims).first(spatial_dims.size() - static_cast<std::size_t>(spatial_count));
}

/// One integer per dim: extents, strides or a position. A 2-D tensor has depth 1.
struct Shape {
  std::int64_t n = 1, c = 1, d = 1, h = 1, w = 1;

  // Inline, because geometry asks for single dims all the time.
  [[nodiscard]] const std::int64_t& operator[](Dim dim) const {
    switch (dim) {
      case Dim::n: return n;
      case Dim::c: return c;
      case Dim::d: return d;
      case Dim::h: return h;
      case Dim::w: break;
    }
    return w;
  }
  [[nodiscard]] std::int64_t& operator[](Dim dim) { return const_cast<std::int64_t&>(std::as_const(*this)[dim]); }
  bool operator==(const Shape&) const = default;
};

/// One integer per spatial dim.
struct Extent3 {
  std::int64_t d = 1, h = 1, w = 1;

  [[nodiscard]] const std::int64_t& operator[](Dim dim) const {
    switch (dim) {
      case Dim::d: return d;
      case Dim::h: return h;
      default: return w;
    }
  }
  [[nodiscard]] std::int64_t& operator[](Dim dim) { return const_cast<std::int64_t&>(std::as_const(*this)[dim]); }
  bool operator==(const Extent3&) const = default;
};

constexpr Extent3 cube(std::int64_t size) { return {size, size, size}; }
constexpr Extent3 square(std::int64_t size) { return {1, size, size}; }

/// Number of items; throws Error on overflow.
std::int64_t volume(const Shape& shape);
/// n * d * h * w: how many channel vectors the tensor has.
std::int64_t pixels(const Shape& shape);
Extent3 spatial(const Shape& shape);

/// "2x16x8x8x8", or without the dims that a network of fewer spatial dims does not name.
std::string to_text(const Shape& shape, int spatial_count = 3);

}  // namespace orthant::tensor
