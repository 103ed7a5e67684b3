#pragma once

#include "orthant/tensor/shape.hpp"

#include <cstdint>
#include <span>

namespace orthant::data {

/// What a network wants of one sample (n = 1).
struct SampleShape {
  tensor::Shape input;
  tensor::Shape target;      ///< c = 1 for labels
  int spatial_count = 3;     ///< 2: files leave depth out
  bool labels = false;       ///< the target is class indices
  std::int64_t classes = 0;  ///< of labels
};

/// Samples by index. A target is values or labels, as the network's loss wants it.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// One sample's source in channels-last order.
  virtual void read_input(std::int64_t sample, std::span<float> into) const = 0;
  /// Its target in channels-last order.
  virtual void read_values(std::int64_t sample, std::span<float> into) const = 0;
  virtual void read_labels(std::int64_t sample, std::span<std::int32_t> into) const = 0;
};

}  // namespace orthant::data
