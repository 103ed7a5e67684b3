#pragma once

#include "orthant/data/sets/dataset.hpp"

namespace orthant::data::generate {

/// A synthetic data set: every number is a function of seed, sample and position alone, so any rank can make any part
/// of it. The target can be learned from the input:
///   values per sample: a smooth random field; the values are its level, slope, amplitude and wave length, in [-1, 1]
///   labels per sample: a pattern of waves and levels that belongs to the class
///   labels per voxel:  balls of each class with its brightness, background is class 0
///   values per voxel:  the first channel without its noise, in every channel
class SyntheticDataset final : public sets::Dataset {
 public:
  SyntheticDataset(const sets::SampleShape& shape, std::int64_t samples, std::uint64_t seed);

  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override;

 private:
  sets::SampleShape shape_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

}  // namespace orthant::data::generate
