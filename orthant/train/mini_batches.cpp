#include "orthant/train/mini_batches.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"
#include "orthant/train/open_data.hpp"

namespace orthant::train {

MiniBatches::MiniBatches(const data::sets::Dataset& dataset, const model::Graph& graph, const StreamOptions& options)
    : dataset_(dataset),
      mini_batch_(graph.nodes.front().shape.n),
      stream_(sample_shape(graph), dataset.samples(), options) {
  if (dataset.samples() < mini_batch_) {
    base::fail(base::Exit::bad_data, "the data has {} samples, fewer than a mini-batch of {}; use a smaller mini_batch",
               dataset.samples(), mini_batch_);
  }
}

std::int64_t MiniBatches::steps_of(std::int64_t epochs) const {
  return (base::checked_mul(epochs, stream_.samples()) - 1) / mini_batch_ + 1;
}

std::int64_t MiniBatches::epoch_of(std::int64_t step) const { return (step - 1) * mini_batch_ / stream_.samples() + 1; }

}  // namespace orthant::train
