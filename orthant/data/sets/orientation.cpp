#include "orthant/data/sets/orientation.hpp"

#include "orthant/base/random.hpp"

#include <algorithm>

namespace orthant::data::sets {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Shape;

constexpr std::uint64_t stream = 0xA6;

Dim dim_of(std::size_t i) { return tensor::spatial_dims.at(i); }

bool single_pixel(const Shape& shape) { return shape.d * shape.h * shape.w == 1; }

/// True if two dims may be swapped: their extents are equal in the source and, if the target has them, in the target.
bool may_swap(const SampleShape& shape, std::size_t i, std::size_t j) {
  const bool sources = shape.input[dim_of(i)] == shape.input[dim_of(j)];
  return sources && (single_pixel(shape.target) || shape.target[dim_of(i)] == shape.target[dim_of(j)]);
}

}  // namespace

Orientation orientation_of(const Augmentation& augmentation, const OrientationKey& key, const SampleShape& shape) {
  const std::uint64_t bits =
      base::keyed(base::keyed(base::keyed(key.seed, stream), static_cast<std::uint64_t>(key.epoch)),
                  static_cast<std::uint64_t>(key.sample));
  Orientation orientation;
  for (std::size_t i = 0; i < 3; ++i)
    orientation.flipped[i] = augmentation.flip[i] && shape.input[dim_of(i)] > 1 && (bits >> i & 1U) != 0;
  if (!augmentation.permute) return orientation;
  // Draws among the dims that may swap with dim i, from the last to the first: every permutation is equally likely.
  for (std::size_t i = 3; i-- > 0;) {
    std::array<std::size_t, 3> others{};
    std::size_t count = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      if (may_swap(shape, i, j)) others[count++] = j;
    }
    std::swap(orientation.from[i], orientation.from[others[base::keyed(bits, i) % count]]);
  }
  return orientation;
}

Box source_box(const Orientation& orientation, const Box& box, const Shape& shape) {
  if (single_pixel(shape)) return box;
  Box source = box;
  for (std::size_t i = 0; i < 3; ++i) {
    const tensor::Range range = box[dim_of(i)];
    const std::int64_t extent = shape[dim_of(i)];
    const tensor::Range turned = orientation.flipped[i] ? tensor::Range{extent - range.hi, extent - range.lo} : range;
    source.set(dim_of(static_cast<std::size_t>(orientation.from[i])), turned);
  }
  return source;
}

template <class T>
void turn(const Orientation& orientation, std::span<const T> source, const tensor::Layout& to, std::span<T> into) {
  Shape extents = to.extents;
  for (std::size_t i = 0; i < 3; ++i)
    extents[dim_of(static_cast<std::size_t>(orientation.from[i]))] = to.extents[dim_of(i)];
  const tensor::Layout from = tensor::channels_last(extents);
  // A step along dim i of the result is a step along its dim of the source, forwards or backwards.
  std::array<std::int64_t, 3> steps{};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    steps[i] = from.strides[dim_of(static_cast<std::size_t>(orientation.from[i]))];
    if (!orientation.flipped[i]) continue;
    first += steps[i] * (to.extents[dim_of(i)] - 1);
    steps[i] = -steps[i];
  }
  for (std::int64_t d = 0; d < to.extents.d; ++d) {
    for (std::int64_t h = 0; h < to.extents.h; ++h) {
      const std::int64_t row = first + d * steps[0] + h * steps[1];
      const std::int64_t to_row = to.offset + d * to.strides.d + h * to.strides.h;
      for (std::int64_t w = 0; w < to.extents.w; ++w)
        std::copy_n(source.begin() + row + w * steps[2], to.extents.c, into.begin() + to_row + w * to.strides.w);
    }
  }
}

template void turn(const Orientation&, std::span<const float>, const tensor::Layout&, std::span<float>);
template void turn(const Orientation&, std::span<const std::int32_t>, const tensor::Layout&, std::span<std::int32_t>);

}  // namespace orthant::data::sets
