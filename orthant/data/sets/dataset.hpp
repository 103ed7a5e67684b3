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
  int spatial_count = 3;     ///< 2: files have no depth
  bool labels = false;       ///< the target is class indices
  std::int64_t classes = 0;  ///< of labels
};

/// Samples by index, read by box, so that a rank reads only what it needs. Boxes are in the coordinates of the sample
/// (n is ignored) and are dense and channels-last in memory. A target consists of values or of labels, depending on the
/// loss of the network. Several threads may read at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Reads `box` of the source of a sample.
  virtual void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const = 0;
  /// Reads `box` of its target.
  virtual void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const = 0;
  virtual void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const = 0;
  /// The name of a sample for people: its file, with its number in brackets where files hold several.
  [[nodiscard]] virtual std::string name(std::int64_t sample) const { return "sample " + std::to_string(sample); }
  /// The number of bytes of samples read from files so far.
  [[nodiscard]] virtual std::int64_t bytes_read() const { return 0; }
};

}  // namespace orthant::data::sets
