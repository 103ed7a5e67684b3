#include "orthant/train/weights.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/npy.hpp"
#include "orthant/data/safetensors.hpp"
#include "orthant/model/init.hpp"

#include <algorithm>

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

void check_names(const data::SafetensorsFile& file, const schedule::Schedule& schedule, const std::string& network) {
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  for (const auto& [parameter, value, gradient, state] : schedule.parameters) {
    if (!file.tensors().contains(parameter.name)) missing.push_back(parameter.name);
  }
  for (const auto& tensor : file.tensors()) {
    const std::string& name = tensor.first;
    const bool known = std::any_of(schedule.parameters.begin(), schedule.parameters.end(),
                                   [&](const auto& p) { return p.parameter.name == name; });
    if (!known && !is_counter(name)) extra.push_back(name);
  }
  if (!missing.empty())
    fail(Exit::bad_data, "'{}' lacks {} of {}: {}", file.path(), missing.size() == 1 ? "a tensor" : "tensors", network,
         list_text(missing));
  if (!extra.empty())
    fail(Exit::bad_data, "'{}' has tensors that {} does not have: {}", file.path(), network, list_text(extra));
}

/// A channels-last activation to the order of files.
void copy_channels_first(std::span<const float> memory, const tensor::Shape& shape, std::span<float> file) {
  const std::int64_t pixels = shape.d * shape.h * shape.w;
  std::size_t item = 0;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t c = 0; c < shape.c; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p)
        file[item++] = memory[static_cast<std::size_t>((n * pixels + p) * shape.c + c)];
    }
  }
}

std::vector<std::int64_t> file_extents(const tensor::Shape& shape, int spatial_count) {
  if (tensor::volume(shape) == shape.n * shape.c) return {shape.n, shape.c};
  if (spatial_count == 2) return {shape.n, shape.c, shape.h, shape.w};
  return {shape.n, shape.c, shape.d, shape.h, shape.w};
}

data::TensorSource activation_source(engine::Engine& engine, const std::string& name, int buffer,
                                     const tensor::Layout& layout, int spatial_count) {
  return {name, file_extents(layout.extents, spatial_count), [&engine, buffer, layout](std::span<float> into) {
            copy_channels_first(engine.floats(buffer).subspan(static_cast<std::size_t>(layout.offset)), layout.extents,
                                into);
          }};
}

data::TensorSource parameter_source(engine::Engine& engine, const model::Graph& graph,
                                    const model::Parameter& parameter, int buffer) {
  return {parameter.name, parameter.extents, [&engine, &graph, &parameter, buffer](std::span<float> into) {
            engine::to_file_order(graph, parameter, engine.floats(buffer), into);
          }};
}

}  // namespace

void initialise_weights(engine::Engine& engine, const model::Graph& graph, std::uint64_t seed) {
  std::vector<float> values;
  for (const auto& parameter : engine.schedule().parameters) {
    values.resize(static_cast<std::size_t>(model::count(parameter.parameter)));
    model::initialise(graph, parameter.parameter, seed, values);
    engine::to_kernel_order(graph, parameter.parameter, values, engine.floats(parameter.value));
  }
}

void load_weights(engine::Engine& engine, const model::Graph& graph, const std::string& path) {
  const data::SafetensorsFile file(path);
  check_names(file, engine.schedule(), graph.name);
  std::vector<float> values;
  for (const auto& parameter : engine.schedule().parameters) {
    const std::string& name = parameter.parameter.name;
    const std::vector<std::int64_t>& extents = file.tensors().at(name).extents;
    if (extents != parameter.parameter.extents) {
      fail(Exit::bad_data, "'{}': tensor '{}' has shape {}, but {} wants {}", path, name, data::extents_text(extents),
           graph.name, data::extents_text(parameter.parameter.extents));
    }
    values.resize(static_cast<std::size_t>(model::count(parameter.parameter)));
    file.read(name, values);
    engine::to_kernel_order(graph, parameter.parameter, values, engine.floats(parameter.value));
  }
}

void save_weights(engine::Engine& engine, const model::Graph& graph, const std::string& path) {
  std::vector<data::TensorSource> tensors;
  for (const auto& parameter : engine.schedule().parameters) {
    tensors.push_back(parameter_source(engine, graph, parameter.parameter, parameter.value));
  }
  data::write_safetensors(path, tensors, {{"format", "pt"}, {"network", graph.name}});
}

void save_gradients(engine::Engine& engine, const model::Graph& graph, const std::string& path) {
  const schedule::Schedule& schedule = engine.schedule();
  std::vector<data::TensorSource> tensors;
  for (const auto& parameter : schedule.parameters) {
    if (parameter.gradient >= 0)
      tensors.push_back(parameter_source(engine, graph, parameter.parameter, parameter.gradient));
  }
  if (schedule.input_gradient >= 0) {
    tensors.push_back(
        activation_source(engine, "input", schedule.input_gradient, schedule.input_layout, graph.spatial_count));
  }
  data::write_safetensors(path, tensors);
}

void save_output(engine::Engine& engine, const model::Graph& graph, const std::string& path) {
  const schedule::Schedule& schedule = engine.schedule();
  data::write_safetensors(
      path, {activation_source(engine, "output", schedule.output, schedule.output_layout, graph.spatial_count)});
}

}  // namespace orthant::train
