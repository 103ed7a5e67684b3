#include "orthant/train/sample_stream.hpp"

#include "orthant/base/random.hpp"

#include <numeric>
#include <utility>

namespace orthant::train {

SampleStream::SampleStream(const data::sets::SampleShape& shape, std::int64_t samples, const StreamOptions& options)
    : shape_(shape), samples_(samples), options_(options) {}

std::vector<std::int64_t> SampleStream::order(std::int64_t epoch) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples_));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!options_.shuffle) return order;
  const std::uint64_t key = base::keyed(base::keyed(options_.seed, 0x5A), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[base::keyed(key, i) % i]);
  return order;
}

data::sets::Orientation SampleStream::orientation(std::int64_t epoch, std::int64_t sample) const {
  return data::sets::orientation_of(options_.augment, {.seed = options_.seed, .epoch = epoch, .sample = sample},
                                    shape_);
}

Draw SampleStream::at(std::int64_t position) {
  const std::int64_t epoch = position / samples_;
  Epoch& known = known_.at(static_cast<std::size_t>(epoch % 2));
  if (known.epoch != epoch) known = {.epoch = epoch, .order = order(epoch)};
  const std::int64_t sample = known.order[static_cast<std::size_t>(position % samples_)];
  return {.epoch = epoch, .sample = sample, .orientation = orientation(epoch, sample)};
}

tensor::Box SampleStream::source(const Draw& draw, data::sets::Role role, const tensor::Box& box) const {
  return data::sets::source_box(draw.orientation, box, role == data::sets::Role::source ? shape_.input : shape_.target);
}

}  // namespace orthant::train
