#include "orthant/train/weights.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/formats/safetensors.hpp"
#include "orthant/engine/parameter_order.hpp"
#include "orthant/model/stored.hpp"
#include "orthant/plan/share.hpp"
#include "orthant/train/numbers.hpp"
#include "orthant/train/speakers.hpp"

#include <algorithm>
#include <set>

namespace orthant::train {
namespace {

using base::Exit;
using base::fail;

/// The first few names and how many more there are.
std::string list_text(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 4);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

bool is_counter(const std::string& name) { return name.ends_with("num_batches_tracked"); }

std::vector<std::int64_t> file_extents(const tensor::Shape& shape, int spatial_count) {
  if (tensor::volume(shape) == shape.n * shape.c) return {shape.n, shape.c};
  std::vector<std::int64_t> extents{shape.n, shape.c};
  for (const tensor::Dim dim : tensor::named_dims(spatial_count)) extents.push_back(shape[dim]);
  return extents;
}

/// Calls visit(offset of its first channel) for every pixel in the order n, d, h, w.
template <class Visit>
void for_each_pixel(const tensor::Layout& layout, Visit visit) {
  for (std::int64_t n = 0; n < layout.extents.n; ++n) {
    for (std::int64_t d = 0; d < layout.extents.d; ++d) {
      for (std::int64_t h = 0; h < layout.extents.h; ++h) {
        for (std::int64_t w = 0; w < layout.extents.w; ++w) {
          visit(layout.offset + n * layout.strides.n + d * layout.strides.d + h * layout.strides.h +
                w * layout.strides.w);
        }
      }
    }
  }
}

/// Copies densely packed pixels into a box of a tensor that is in the order of files.
void put_box(const tensor::Box& box, const tensor::Shape& whole, std::span<const float> items, std::span<float> file) {
  const tensor::Layout layout = tensor::box_of(tensor::channels_first(whole), box);
  std::size_t item = 0;
  for_each_pixel(layout, [&](std::int64_t pixel) {
    for (std::int64_t c = 0; c < layout.extents.c; ++c)
      file[static_cast<std::size_t>(pixel + c * layout.strides.c)] = items[item++];
  });
}

std::vector<float> copy_of(const engine::Engine& engine, int buffer) {
  std::vector<float> items(engine.item_count(buffer));
  engine.read(buffer, items);
  return items;
}

/// The items of a port, pixel by pixel.
std::vector<float> packed(const engine::Engine& engine, const schedule::Port& port) {
  std::vector<float> items;
  if (port.buffer < 0) return items;
  const std::vector<float> memory = copy_of(engine, port.buffer);
  items.reserve(static_cast<std::size_t>(tensor::volume(port.layout.extents)));
  for_each_pixel(port.layout, [&](std::int64_t pixel) {
    const auto first = memory.begin() + pixel;
    items.insert(items.end(), first, first + port.layout.extents.c);
  });
  return items;
}

/// Collective. The boxes of all ranks as one tensor in the order of files, on rank 0. Only ranks that have boxes send
/// any items.
std::vector<float> collected(const engine::Session& session, const std::vector<schedule::Port>& ports,
                             const tensor::Shape& shape) {
  std::vector<tensor::Box> mine;
  for (const schedule::Port& port : ports) mine.push_back(port.box);
  const auto boxes = comm::gather(session.comm(), std::span<const tensor::Box>(mine), 0);
  if (session.comm().rank() != 0) {
    for (const schedule::Port& port : ports) {
      const std::vector<float> items = packed(session.engine(), port);
      if (!items.empty()) comm::send(session.comm(), std::span<const float>(items), 0);
    }
    return {};
  }
  std::vector<float> file(static_cast<std::size_t>(tensor::volume(shape)));
  std::vector<float> items;
  for (int rank = 0; rank < session.comm().size(); ++rank) {
    const std::vector<tensor::Box>& of_rank = boxes[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      if (tensor::is_empty(of_rank[i])) continue;
      if (rank == 0) {
        items = packed(session.engine(), ports[i]);
      } else {
        items.resize(static_cast<std::size_t>(tensor::volume(of_rank[i])));
        comm::receive(session.comm(), std::span<float>(items), rank);
      }
      put_box(of_rank[i], shape, items, file);
    }
  }
  return file;
}

data::formats::TensorSource tensor_source(std::string name, std::vector<std::int64_t> extents,
                                          std::vector<float> items) {
  return {std::move(name), std::move(extents),
          [items = std::move(items)](std::span<float> into) { std::copy(items.begin(), items.end(), into.begin()); }};
}

/// Collective. Assembles the whole parameter in `into` on rank 0 from its shards, each sent by its first holder.
void collect_parameter(const engine::Session& session, const schedule::ParameterBuffers& entry, int buffer,
                       std::span<float> into) {
  const model::Parameter& parameter = entry.parameter;
  const int mine = session.comm().rank();
  if (mine != 0) {
    if (buffer >= 0 && speaks(session.plan(), session.graph(), parameter.node, mine))
      comm::send(session.comm(), std::span<const float>(copy_of(session.engine(), buffer)), 0);
    return;
  }
  for (const int rank : speakers_of(session.plan(), session.graph(), parameter.node)) {
    const plan::Shard shard = plan::shard_of(session.plan(), session.graph(), parameter, rank);
    const std::int64_t count = plan::count(parameter, shard);
    if (count == 0) continue;
    std::vector<float> items;
    if (rank == 0) {
      items = copy_of(session.engine(), buffer);
    } else {
      items.resize(static_cast<std::size_t>(count));
      comm::receive(session.comm(), std::span<float>(items), rank);
    }
    engine::to_file_order(session.graph(), parameter, shard, items, into);
  }
}

/// Collective. The same in the order that files have, on rank 0.
void collect_stored(const engine::Session& session, const schedule::ParameterBuffers& entry, int buffer,
                    std::span<float> into) {
  const model::Stored* stored = model::stored_of(session.graph(), entry.parameter);
  if (stored == nullptr) return collect_parameter(session, entry, buffer, into);
  std::vector<float> items(into.size());
  collect_parameter(session, entry, buffer, items);
  model::to_stored(*stored, items, into);
}

/// Collective. Rank 0 writes the parameters that `buffer_of` gives a buffer on some rank, then `others`.
template <class Wanted, class BufferOf>
void save_parameters(const engine::Session& session, const std::string& path, Wanted wanted, BufferOf buffer_of,
                     std::vector<data::formats::TensorSource> others,
                     const std::map<std::string, std::string>& metadata) {
  std::vector<data::formats::TensorSource> tensors;
  for (const auto& entry : session.schedule().parameters) {
    if (!wanted(entry.parameter) || !model::is_in_files(session.graph(), entry.parameter)) continue;
    if (session.comm().rank() != 0) {
      collect_parameter(session, entry, buffer_of(entry), {});
      continue;
    }
    tensors.push_back({entry.parameter.name, model::file_extents(session.graph(), entry.parameter),
                       [&](std::span<float> into) { collect_stored(session, entry, buffer_of(entry), into); }});
  }
  if (session.comm().rank() != 0) return;
  for (data::formats::TensorSource& other : others) tensors.push_back(std::move(other));
  data::formats::write_safetensors(path, tensors, metadata);
}

}  // namespace

void check_weights(const data::formats::SafetensorsFile& file, const model::Graph& graph) {
  const std::vector<model::Parameter> parameters = model::parameters(graph);
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  // Weights of layers that only other outputs need may be there.
  std::set<std::string> known(graph.left_out.begin(), graph.left_out.end());
  for (const model::Parameter& parameter : parameters) {
    if (!model::is_in_files(graph, parameter)) continue;
    known.insert(parameter.name);
    if (!file.tensors().contains(parameter.name)) missing.push_back(parameter.name);
  }
  for (const auto& tensor : file.tensors()) {
    if (!known.contains(tensor.first) && !is_counter(tensor.first)) extra.push_back(tensor.first);
  }
  if (!missing.empty())
    fail(Exit::bad_data, "'{}' lacks {} of {}: {}", file.path(), missing.size() == 1 ? "a tensor" : "tensors",
         graph.name, list_text(missing));
  if (!extra.empty())
    fail(Exit::bad_data, "'{}' has tensors that {} does not have: {}", file.path(), graph.name, list_text(extra));
  for (const model::Parameter& parameter : parameters) {
    if (!model::is_in_files(graph, parameter)) continue;
    const std::vector<std::int64_t>& extents = file.tensors().at(parameter.name).extents;
    const std::vector<std::int64_t> wanted = model::file_extents(graph, parameter);
    if (extents != wanted) {
      fail(Exit::bad_data, "'{}': tensor '{}' has shape {}, but {} wants {}", file.path(), parameter.name,
           data::formats::extents_text(extents), graph.name, data::formats::extents_text(wanted));
    }
  }
}

void load_weights(engine::Session& session, const std::string& path) {
  const model::Graph& graph = session.graph();
  const data::formats::SafetensorsFile file(path);
  check_weights(file, graph);
  std::vector<float> values;
  std::vector<float> stored_values;
  for (const auto& parameter : session.schedule().parameters) {
    const std::string& name = parameter.parameter.name;
    const model::Stored* stored = model::stored_of(graph, parameter.parameter);
    const auto items = static_cast<std::size_t>(model::count(parameter.parameter));
    if (!model::is_in_files(graph, parameter.parameter)) {
      if (parameter.value < 0) continue;
      values.resize(items);
      stored->fill(values);
      session.set_parameter(parameter, values);
      continue;
    }
    if (parameter.value < 0) continue;
    values.resize(items);
    file.read(name, values);
    if (stored != nullptr) {
      stored_values.assign(values.begin(), values.end());
      model::from_stored(*stored, stored_values, values);
    }
    session.set_parameter(parameter, values);
  }
}

void save_weights(const engine::Session& session, const std::string& path) {
  check_finite_weights(session);
  save_parameters(
      session, path, [](const model::Parameter&) { return true; },
      [](const schedule::ParameterBuffers& entry) { return entry.value; }, {},
      {{"format", "pt"}, {"network", session.graph().name}});
}

void save_gradients(const engine::Session& session, const std::string& path) {
  const schedule::Schedule& schedule = session.schedule();
  std::vector<data::formats::TensorSource> others;
  const bool input = comm::max(session.comm(), schedule.input_gradients.empty() ? 0 : 1) == 1;
  if (input) {
    const tensor::Shape& shape = session.graph().nodes.front().shape;
    others.push_back(tensor_source("input", file_extents(shape, session.graph().spatial_count),
                                   collected(session, schedule.input_gradients, shape)));
  }
  save_parameters(
      session, path, [](const model::Parameter& parameter) { return parameter.trainable; },
      [](const schedule::ParameterBuffers& entry) { return entry.gradient; }, std::move(others), {});
}

void save_output(const engine::Session& session, const std::string& path) {
  const tensor::Shape& shape = session.graph().nodes.back().shape;
  std::vector<float> items = collected(session, session.schedule().outputs, shape);
  if (session.comm().rank() != 0) return;
  data::formats::write_safetensors(
      path, {tensor_source("output", file_extents(shape, session.graph().spatial_count), std::move(items))});
}

}  // namespace orthant::train
