#pragma once

#include "orthant/tensor/box.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace orthant::data::sets {

/// What a network wants of one sample (n = 1).
struct SampleShape {
  tensor::Shape input;
  tensor::Shape target;      ///< c = 1 for labels
  int spatial_count = 3;     ///< 2: files leave depth out
  bool labels = false;       ///< the target is class indices
  std::int64_t classes = 0;  ///< of labels
};

/// Samples by index, read by box: a rank takes what it needs and no more. Boxes are in the sample's coordinates (n is
/// ignored) and are dense and channels-last in memory. A target is values or labels, as the network's loss wants it.
/// Several threads may read at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// `box` of a sample's source.
  virtual void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const = 0;
  /// `box` of its target.
  virtual void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const = 0;
  virtual void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const = 0;
  /// What people call a sample: its file, with its number in brackets where files hold several.
  [[nodiscard]] virtual std::string name(std::int64_t sample) const { return "sample " + std::to_string(sample); }
  /// Bytes of samples taken from files so far.
  [[nodiscard]] virtual std::int64_t bytes_read() const { return 0; }
};

}  // namespace orthant::data::sets
