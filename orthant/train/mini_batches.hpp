#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/sample_stream.hpp"

#include <cstdint>

namespace orthant::train {

/// The mini-batches of a run: which samples each step takes, and how many steps an epoch has. Step s, which counts from
/// 1, takes samples [(s - 1) * mini-batch, s * mini-batch) of the stream.
class MiniBatches {
 public:
  /// Throws Error if the data has fewer samples than a mini-batch. `dataset` must outlive this.
  MiniBatches(const data::sets::Dataset& dataset, const model::Graph& graph, const StreamOptions& options);

  [[nodiscard]] const data::sets::Dataset& dataset() const { return dataset_; }
  [[nodiscard]] const SampleStream& stream() const { return stream_; }
  [[nodiscard]] std::int64_t mini_batch() const { return mini_batch_; }
  /// The number of steps after which every sample has been used at least `epochs` times.
  [[nodiscard]] std::int64_t steps_of(std::int64_t epochs) const;
  [[nodiscard]] std::int64_t steps_per_epoch() const { return steps_of(1); }
  /// The epoch (from 1) of the first sample of a step (from 1).
  [[nodiscard]] std::int64_t epoch_of(std::int64_t step) const;

 private:
  const data::sets::Dataset& dataset_;
  std::int64_t mini_batch_;
  SampleStream stream_;
};

}  // namespace orthant::train
