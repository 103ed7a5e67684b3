#include "orthant/train/loader.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/data/npy_dataset.hpp"
#include "orthant/data/synthetic.hpp"

#include <numeric>
#include <utility>

namespace orthant::train {
namespace {

std::vector<std::string> expand(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : data::matching_paths(pattern)) paths.push_back(std::move(path));
  }
  return paths;
}

/// Sample i of n equal parts of a buffer.
template <class T>
std::span<T> part(std::span<T> whole, std::int64_t i, std::int64_t n) {
  const std::size_t size = whole.size() / static_cast<std::size_t>(n);
  return whole.subspan(static_cast<std::size_t>(i) * size, size);
}

}  // namespace

data::SampleShape sample_shape(const model::Graph& graph) {
  data::SampleShape shape{.input = graph.nodes.front().shape,
                          .target = model::target_shape(graph),
                          .spatial_count = graph.spatial_count,
                          .labels = model::takes_labels(graph.loss),
                          .classes = graph.nodes.back().shape.c};
  shape.input.n = 1;
  shape.target.n = 1;
  return shape;
}

std::unique_ptr<data::Dataset> open_data(const DataOptions& options, const model::Graph& graph) {
  const data::SampleShape shape = sample_shape(graph);
  if (options.kind == DataOptions::Kind::synthetic)
    return std::make_unique<data::SyntheticDataset>(shape, options.samples, options.seed);
  return std::make_unique<data::NpyDataset>(expand(options.inputs), expand(options.targets), shape);
}

Loader::Loader(const data::Dataset& dataset, const model::Graph& graph, bool shuffle, std::uint64_t seed)
    : dataset_(dataset),
      mini_batch_(graph.nodes.front().shape.n),
      steps_per_epoch_(dataset.samples() / mini_batch_),
      shuffle_(shuffle),
      seed_(seed),
      order_(static_cast<std::size_t>(dataset.samples())) {
  if (steps_per_epoch_ == 0) {
    base::fail(base::Exit::bad_data, "the data has {} samples, fewer than a mini-batch of {}; use a smaller mini_batch",
               dataset.samples(), mini_batch_);
  }
}

void Loader::order_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!shuffle_) return;
  const std::uint64_t key = base::keyed(base::keyed(seed_, 0x5A), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[base::keyed(key, i) % i]);
}

void Loader::load(std::int64_t step, engine::Engine& engine) {
  const std::int64_t epoch = (step - 1) / steps_per_epoch_;
  if (epoch != epoch_) order_epoch(epoch);
  const schedule::Schedule& schedule = engine.schedule();
  const std::int64_t first = (step - 1) % steps_per_epoch_ * mini_batch_;
  for (std::int64_t i = 0; i < mini_batch_; ++i) {
    const std::int64_t sample = order_[static_cast<std::size_t>(first + i)];
    dataset_.read_input(sample, part(engine.floats(schedule.input), i, mini_batch_));
    if (schedule.labels) {
      dataset_.read_labels(sample, part(engine.labels(schedule.target), i, mini_batch_));
    } else {
      dataset_.read_values(sample, part(engine.floats(schedule.target), i, mini_batch_));
    }
  }
}

}  // namespace orthant::train
