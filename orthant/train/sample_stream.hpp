#pragma once

#include "orthant/data/sets/intake.hpp"
#include "orthant/data/sets/orientation.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace orthant::train {

/// The order of samples and how they are turned: functions of seed and epoch.
struct StreamOptions {
  bool shuffle = false;
  std::uint64_t seed = 0;
  data::sets::Augmentation augment{};
};

/// One sample of the stream.
struct Draw {
  std::int64_t epoch = 0, sample = 0;
  data::sets::Orientation orientation{};
};

/// The samples one after the other, epoch after epoch without end: each epoch has every sample once, in an order of its
/// own. Mini-batches are cut from it, so that one may have the end of an epoch and the beginning of the next.
class SampleStream {
 public:
  SampleStream(const data::sets::SampleShape& shape, std::int64_t samples, const StreamOptions& options);

  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] const data::sets::SampleShape& shape() const { return shape_; }
  [[nodiscard]] Draw at(std::int64_t position);
  /// The samples of an epoch in their order.
  [[nodiscard]] std::vector<std::int64_t> order(std::int64_t epoch) const;
  [[nodiscard]] data::sets::Orientation orientation(std::int64_t epoch, std::int64_t sample) const;
  /// The box of the stored sample from which `box` of the turned sample is made.
  [[nodiscard]] tensor::Box source(const Draw& draw, data::sets::Role role, const tensor::Box& box) const;

 private:
  struct Epoch {
    std::int64_t epoch = -1;
    std::vector<std::int64_t> order;
  };

  data::sets::SampleShape shape_;
  std::int64_t samples_;
  StreamOptions options_;
  std::array<Epoch, 2> known_;  ///< the last even and the last odd epoch: a mini-batch may span two
};

}  // namespace orthant::train
