#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/tensor/layout.hpp"

#include <array>

namespace orthant::data::sets {

/// The ways in which samples may be turned: flips along d, h and w, and permutations of dims of equal extent.
struct Augmentation {
  std::array<bool, 3> flip{};
  bool permute = false;

  [[nodiscard]] bool any() const { return flip[0] || flip[1] || flip[2] || permute; }
  bool operator==(const Augmentation&) const = default;
};

/// How a whole sample is turned: dim i of the result (d, h, w) is dim `from[i]` of the sample, backwards if
/// `flipped[i]`.
struct Orientation {
  std::array<int, 3> from{0, 1, 2};
  std::array<bool, 3> flipped{};

  bool operator==(const Orientation&) const = default;
};

/// A function of seed, epoch and sample alone, so that all ranks turn a sample alike.
struct OrientationKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, sample = 0;
};
Orientation orientation_of(const Augmentation& augmentation, const OrientationKey& key, const SampleShape& shape);

/// The box of the sample from which `box` of the turned sample is made; `shape` is the shape of the turned sample.
/// Tensors of a single pixel are not turned.
tensor::Box source_box(const Orientation& orientation, const tensor::Box& box, const tensor::Shape& shape);

/// Turns a dense channels-last source box (one sample) into `to`, which has the extents of the turned box.
template <class T>
void turn(const Orientation& orientation, std::span<const T> source, const tensor::Layout& to, std::span<T> into);

}  // namespace orthant::data::sets
