#pragma once

#include "orthant/engine/engine.hpp"
#include "orthant/train/mini_batches.hpp"

#include <cstddef>
#include <vector>

namespace orthant::train {

/// Loads this rank's boxes of any mini-batch from the data into the engine's buffers, when it is asked to. SampleFeed
/// does the same ahead of time, for consecutive steps.
class Loader {
 public:
  explicit Loader(const MiniBatches& batches);

  /// The mini-batch of `step`, which counts from 1.
  void load(std::int64_t step, engine::Engine& engine);

 private:
  const data::sets::Dataset& dataset_;
  std::int64_t mini_batch_;
  SampleStream stream_;
  std::vector<std::byte> room_;  ///< for a box between data and engine
};

}  // namespace orthant::train
