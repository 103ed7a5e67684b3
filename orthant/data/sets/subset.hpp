#pragma once

#include "orthant/data/sets/dataset.hpp"

#include <vector>

namespace orthant::data::sets {

/// Some samples of a data set, which must outlive this object.
class SubsetDataset final : public Dataset {
 public:
  SubsetDataset(const Dataset& dataset, std::vector<std::int64_t> samples)
      : dataset_(dataset), samples_(std::move(samples)) {}

  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(samples_.size()); }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override {
    dataset_.read_input(at(sample), box, into);
  }
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override {
    dataset_.read_values(at(sample), box, into);
  }
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override {
    dataset_.read_labels(at(sample), box, into);
  }
  [[nodiscard]] std::string name(std::int64_t sample) const override { return dataset_.name(at(sample)); }
  [[nodiscard]] std::int64_t bytes_read() const override { return dataset_.bytes_read(); }

 private:
  [[nodiscard]] std::int64_t at(std::int64_t sample) const { return samples_[static_cast<std::size_t>(sample)]; }

  const Dataset& dataset_;
  std::vector<std::int64_t> samples_;
};

}  // namespace orthant::data::sets
