#pragma once

#include "orthant/data/sets/dataset.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace orthant::data::sets {

/// What can be done to every number of a source when it is read.
struct Log1p {
  bool operator==(const Log1p&) const = default;
};
struct Scale {
  double factor = 1;
  bool operator==(const Scale&) const = default;
};
/// (x - mean) / deviation; one number, or one per channel.
struct Normalise {
  std::vector<double> mean{0}, deviation{1};
  bool operator==(const Normalise&) const = default;
};
using Transform = std::variant<Log1p, Scale, Normalise>;

/// A data set whose sources go through transforms, in order. The result of a number depends only on the number
/// and its channel, so that a box has the same values as in the whole sample.
class TransformedDataset final : public Dataset {
 public:
  /// Throws Error if a list has neither one number nor one per channel.
  TransformedDataset(std::unique_ptr<Dataset> dataset, std::vector<Transform> transforms, const SampleShape& shape);

  [[nodiscard]] std::int64_t samples() const override { return dataset_->samples(); }
  /// Throws Error with the position of a number whose transform is not finite.
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override;
  [[nodiscard]] std::string name(std::int64_t sample) const override { return dataset_->name(sample); }
  [[nodiscard]] std::int64_t bytes_read() const override { return dataset_->bytes_read(); }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::vector<Transform> transforms_;
  std::vector<float> logarithms_;  ///< log1p of 0, 1, 2, ...: counts are mostly small
};

}  // namespace orthant::data::sets
