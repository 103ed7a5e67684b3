#include "orthant/train/loader.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/generate/synthetic.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/data/sets/npy_dataset.hpp"

#include <cstring>
#include <utility>

namespace orthant::train {
namespace {

std::vector<std::string> expand(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : data::io::matching_paths(pattern)) paths.push_back(std::move(path));
  }
  return paths;
}

std::unique_ptr<data::sets::Dataset> open_kind(const DataOptions& options, const data::sets::SampleShape& shape,
                                               const std::string& survey) {
  switch (options.kind) {
    case DataOptions::Kind::synthetic:
      return std::make_unique<data::generate::SyntheticDataset>(shape, options.samples, options.seed);
    case DataOptions::Kind::npy:
      return std::make_unique<data::sets::NpyDataset>(expand(options.inputs), expand(options.targets), shape);
    case DataOptions::Kind::hdf5: break;
  }
  return std::make_unique<data::sets::Hdf5Dataset>(data::formats::outlines_from_text(survey), options.hdf5, shape);
}

}  // namespace

data::sets::SampleShape sample_shape(const model::Graph& graph) {
  data::sets::SampleShape shape{.input = graph.nodes.front().shape,
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
  return data::formats::outlines_text(
      data::formats::survey_hdf5(data::io::list_files(options.files, {".h5", ".hdf5"})));
}

std::unique_ptr<data::sets::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                               const std::string& survey) {
  const data::sets::SampleShape shape = sample_shape(graph);
  std::unique_ptr<data::sets::Dataset> dataset = open_kind(options, shape, survey);
  if (options.transforms.empty()) return dataset;
  return std::make_unique<data::sets::TransformedDataset>(std::move(dataset), options.transforms, shape);
}

std::vector<Slot> slots_of(const schedule::Schedule& schedule) {
  std::vector<Slot> slots;
  const auto add = [&](const std::vector<schedule::Port>& ports, data::sets::Role role) {
    for (const schedule::Port& port : ports) {
      if (port.buffer < 0 || tensor::is_empty(port.box)) continue;
      for (std::int64_t n = port.box.lo.n; n < port.box.hi.n; ++n) {
        Slot slot{.role = role, .n = n, .box = port.box, .buffer = port.buffer, .layout = port.layout};
        slot.box.set(tensor::Dim::n, {0, 1});
        slot.layout.extents.n = 1;
        slot.layout.offset += (n - port.box.lo.n) * port.layout.strides.n;
        slots.push_back(slot);
      }
    }
  };
  add(schedule.inputs, data::sets::Role::source);
  add(schedule.targets, data::sets::Role::target);
  return slots;
}

void read_box(const data::sets::Dataset& dataset, const data::sets::SampleShape& shape, std::int64_t sample,
              data::sets::Role role, const tensor::Box& box, std::span<std::byte> into) {
  const auto items = static_cast<std::size_t>(tensor::volume(box));
  const std::span<float> floats(reinterpret_cast<float*>(into.data()), items);
  if (role == data::sets::Role::source) {
    dataset.read_input(sample, box, floats);
  } else if (shape.labels) {
    dataset.read_labels(sample, box, {reinterpret_cast<std::int32_t*>(into.data()), items});
  } else {
    dataset.read_values(sample, box, floats);
  }
}

void put_box(const Slot& slot, const data::sets::Orientation& orientation, std::span<const std::byte> box,
             engine::Engine& engine) {
  // Floats are copied as whole numbers of the same size.
  const std::span<std::int32_t> memory = engine.labels(slot.buffer);
  if (tensor::is_dense(slot.layout) && orientation == data::sets::Orientation{}) {
    std::memcpy(memory.data() + slot.layout.offset, box.data(), box.size());
    return;
  }
  const std::span<const std::int32_t> items(reinterpret_cast<const std::int32_t*>(box.data()),
                                            box.size() / sizeof(std::int32_t));
  data::sets::turn<std::int32_t>(orientation, items, slot.layout, memory);
}

Loader::Loader(const data::sets::Dataset& dataset, const model::Graph& graph, const StreamOptions& options)
    : dataset_(dataset),
      mini_batch_(graph.nodes.front().shape.n),
      stream_(sample_shape(graph), dataset.samples(), options) {
  if (dataset.samples() < mini_batch_) {
    base::fail(base::Exit::bad_data, "the data has {} samples, fewer than a mini-batch of {}; use a smaller mini_batch",
               dataset.samples(), mini_batch_);
  }
}

std::int64_t Loader::steps_of(std::int64_t epochs) const {
  return (base::checked_mul(epochs, stream_.samples()) - 1) / mini_batch_ + 1;
}

std::int64_t Loader::epoch_of(std::int64_t step) const { return (step - 1) * mini_batch_ / stream_.samples() + 1; }

void Loader::load(std::int64_t step, engine::Engine& engine) {
  for (const Slot& slot : slots_of(engine.schedule())) {
    const Draw draw = stream_.at((step - 1) * mini_batch_ + slot.n);
    const tensor::Box box = stream_.source(draw, slot.role, slot.box);
    const auto bytes = static_cast<std::size_t>(data::sets::box_bytes(box));
    if (tensor::is_dense(slot.layout) && draw.orientation == data::sets::Orientation{}) {
      const std::span<std::byte> memory = std::as_writable_bytes(engine.labels(slot.buffer));
      const auto offset = static_cast<std::size_t>(slot.layout.offset) * sizeof(float);
      read_box(dataset_, stream_.shape(), draw.sample, slot.role, box, memory.subspan(offset, bytes));
      continue;
    }
    if (room_.size() < bytes) room_.resize(bytes);
    const std::span<std::byte> room(room_.data(), bytes);
    read_box(dataset_, stream_.shape(), draw.sample, slot.role, box, room);
    put_box(slot, draw.orientation, room, engine);
  }
}

}  // namespace orthant::train
