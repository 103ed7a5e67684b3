#include "orthant/train/loader.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/data/file_list.hpp"
#include "orthant/data/hdf5_survey.hpp"
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

std::unique_ptr<data::Dataset> open_kind(const DataOptions& options, const data::SampleShape& shape,
                                         const std::string& survey) {
  switch (options.kind) {
    case DataOptions::Kind::synthetic:
      return std::make_unique<data::SyntheticDataset>(shape, options.samples, options.seed);
    case DataOptions::Kind::npy:
      return std::make_unique<data::NpyDataset>(expand(options.inputs), expand(options.targets), shape);
    case DataOptions::Kind::hdf5: break;
  }
  return std::make_unique<data::Hdf5Dataset>(data::outlines_from_text(survey), options.hdf5, shape);
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

std::string survey_data(const DataOptions& options) {
  if (options.kind != DataOptions::Kind::hdf5) return "";
  return data::outlines_text(data::survey_hdf5(data::list_files(options.files, {".h5", ".hdf5"})));
}

std::unique_ptr<data::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                         const std::string& survey) {
  const data::SampleShape shape = sample_shape(graph);
  std::unique_ptr<data::Dataset> dataset = open_kind(options, shape, survey);
  if (options.transforms.empty()) return dataset;
  return std::make_unique<data::TransformedDataset>(std::move(dataset), options.transforms, shape);
}

Loader::Loader(const data::Dataset& dataset, const model::Graph& graph, const LoaderOptions& options)
    : dataset_(dataset),
      mini_batch_(graph.nodes.front().shape.n),
      steps_per_epoch_(dataset.samples() / mini_batch_),
      options_(options),
      shape_(sample_shape(graph)),
      order_(static_cast<std::size_t>(dataset.samples())) {
  if (steps_per_epoch_ == 0) {
    base::fail(base::Exit::bad_data, "the data has {} samples, fewer than a mini-batch of {}; use a smaller mini_batch",
               dataset.samples(), mini_batch_);
  }
}

void Loader::order_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!options_.shuffle) return;
  const std::uint64_t key = base::keyed(base::keyed(options_.seed, 0x5A), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[base::keyed(key, i) % i]);
}

/// `memory(buffer)` is where a port's items lie, `read(sample, box, span)` reads a box, dense; `shape` is the whole.
template <class T, class Memory, class Read>
void Loader::load_boxes(const std::vector<schedule::Port>& ports, const tensor::Shape& shape, std::int64_t first,
                        std::vector<T>& scratch, Memory memory, Read read) {
  for (const schedule::Port& port : ports) {
    if (port.buffer < 0 || tensor::is_empty(port.box)) continue;
    const std::span<T> buffer = memory(port.buffer);
    for (std::int64_t n = port.box.lo.n; n < port.box.hi.n; ++n) {
      const std::int64_t sample = order_[static_cast<std::size_t>(first + n)];
      const data::Orientation orientation =
          data::orientation_of(options_.augment, {.seed = options_.seed, .epoch = epoch_, .sample = sample}, shape_);
      tensor::Box box = port.box;
      box.set(tensor::Dim::n, {0, 1});
      box = data::source_box(orientation, box, shape);
      const auto items = static_cast<std::size_t>(tensor::volume(box));
      tensor::Layout to = port.layout;
      to.extents.n = 1;
      to.offset += (n - port.box.lo.n) * port.layout.strides.n;
      if (tensor::is_dense(to) && orientation == data::Orientation{}) {
        read(sample, box, buffer.subspan(static_cast<std::size_t>(to.offset), items));
        continue;
      }
      scratch.resize(items);
      read(sample, box, std::span<T>(scratch));
      data::turn<T>(orientation, scratch, to, buffer);
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
  load_boxes(schedule.inputs, shape_.input, first, values_, floats,
             [&](std::int64_t sample, const tensor::Box& box, std::span<float> into) {
               dataset_.read_input(sample, box, into);
             });
  if (schedule.labels) {
    load_boxes(schedule.targets, shape_.target, first, labels_, labels,
               [&](std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) {
                 dataset_.read_labels(sample, box, into);
               });
  } else {
    load_boxes(schedule.targets, shape_.target, first, values_, floats,
               [&](std::int64_t sample, const tensor::Box& box, std::span<float> into) {
                 dataset_.read_values(sample, box, into);
               });
  }
}

}  // namespace orthant::train
