#include "orthant/train/loader.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/data/npy_dataset.hpp"
#include "orthant/data/synthetic.hpp"

#include <algorithm>
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

/// Copies a box of a sample, pixel by pixel.
template <class T>
void copy_box(std::span<const T> sample, const tensor::Layout& from, std::span<T> buffer, const tensor::Layout& to) {
  for (std::int64_t d = 0; d < from.extents.d; ++d) {
    for (std::int64_t h = 0; h < from.extents.h; ++h) {
      for (std::int64_t w = 0; w < from.extents.w; ++w) {
        const auto at = [&](const tensor::Layout& layout) {
          return layout.offset + d * layout.strides.d + h * layout.strides.h + w * layout.strides.w;
        };
        std::copy_n(sample.begin() + at(from), from.extents.c, buffer.begin() + at(to));
      }
    }
  }
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

/// `memory(buffer)` is where a port's items lie, `read(sample, box, span)` reads a box, dense.
template <class T, class Memory, class Read>
void Loader::load_boxes(const std::vector<schedule::Port>& ports, std::int64_t first, std::vector<T>& scratch,
                        Memory memory, Read read) {
  for (const schedule::Port& port : ports) {
    if (port.buffer < 0 || tensor::is_empty(port.box)) continue;
    const std::span<T> buffer = memory(port.buffer);
    for (std::int64_t n = port.box.lo.n; n < port.box.hi.n; ++n) {
      const std::int64_t sample = order_[static_cast<std::size_t>(first + n)];
      tensor::Box box = port.box;
      box.set(tensor::Dim::n, {0, 1});
      const auto items = static_cast<std::size_t>(tensor::volume(box));
      tensor::Layout to = port.layout;
      to.extents.n = 1;
      to.offset += (n - port.box.lo.n) * port.layout.strides.n;
      if (tensor::is_dense(to)) {
        read(sample, box, buffer.subspan(static_cast<std::size_t>(to.offset), items));
        continue;
      }
      scratch.resize(items);
      read(sample, box, std::span<T>(scratch));
      copy_box<T>(scratch, tensor::channels_last(to.extents), buffer, to);
    }
  }
}

void Loader::load(std::int64_t step, engine::Engine& engine) {
  const std::int64_t epoch = (step - 1) / steps_per_epoch_;
  if (epoch != epoch_) order_epoch(epoch);
  const schedule::Schedule& schedule = engine.schedule();
  const std::int64_t first = (step - 1) % steps_per_epoch_ * mini_batch_;
  const auto floats = [&](int buffer) { return engine.floats(buffer); };
  const auto labels = [&](int buffer) { return engine.labels(buffer); };
  load_boxes(schedule.inputs, first, values_, floats,
             [&](std::int64_t sample, const tensor::Box& box, std::span<float> into) {
               dataset_.read_input(sample, box, into);
             });
  if (schedule.labels) {
    load_boxes(schedule.targets, first, labels_, labels,
               [&](std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) {
                 dataset_.read_labels(sample, box, into);
               });
  } else {
    load_boxes(schedule.targets, first, values_, floats,
               [&](std::int64_t sample, const tensor::Box& box, std::span<float> into) {
                 dataset_.read_values(sample, box, into);
               });
  }
}

}  // namespace orthant::train
