#include "orthant/model/onnx/load.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/onnx/build.hpp"
#include "orthant/model/printable.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;
using tensor::Shape;

constexpr std::int64_t oldest = 9, newest = 20;

/// The one input that is no weight.
const Declared& input_of(const ModelFile& file) {
  std::vector<const Declared*> found;
  for (const Declared& input : file.graph.inputs) {
    const bool weight = std::any_of(file.graph.initializers.begin(), file.graph.initializers.end(),
                                    [&](const Tensor& tensor) { return tensor.name == input.name; });
    if (!weight) found.push_back(&input);
  }
  if (found.size() != 1)
    fail(Exit::bad_data, "{}: {} inputs; networks with one are supported", file.path, found.size());
  const Declared& input = *found.front();
  if (!input.extents || input.extents->size() < 3 || input.extents->size() > 5) {
    fail(Exit::bad_data, "{}: input '{}' has {} dims; samples, channels and 1 to 3 dims of space are supported",
         file.path, printable(input.name), input.extents ? input.extents->size() : 0);
  }
  return input;
}

/// What the network is run through with: the file's extents where it fixes them.
InputShape sample_of(const ModelFile& file, const Declared& input, const NetworkOptions& options) {
  const Extents& extents = *input.extents;
  const int spatial_count = static_cast<int>(extents.size()) - 2;
  InputShape sample;
  if (!options.input.empty()) {
    sample = parse_input(options.input, options.mini_batch);
    if (sample.spatial_count != spatial_count) {
      fail(Exit::usage, "{}: input {}; it has {} spatial dim{}", file.path, options.input, spatial_count,
           spatial_count == 1 ? "" : "s");
    }
    if (extents[1] >= 0 && extents[1] != sample.shape.c)
      fail(Exit::usage, "{}: input {}; it takes {} channels", file.path, options.input, extents[1]);
  } else {
    sample.spatial_count = spatial_count;
    if (std::find(extents.begin() + 1, extents.end(), -1) != extents.end())
      fail(Exit::usage, "{}: it leaves the shape of its input open; give one, e.g. --input {}", file.path,
           spatial_count == 3   ? "1x64x64x64"
           : spatial_count == 2 ? "3x224x224"
                                : "1x4096");
    sample.shape.c = extents[1];
    for (int i = 0; i < spatial_count; ++i)
      sample.shape[tensor::spatial_dims.at(static_cast<std::size_t>(3 - spatial_count + i))] =
          extents[static_cast<std::size_t>(2 + i)];
  }
  sample.shape.n = extents[0] > 0 ? extents[0] : options.mini_batch;
  for (const tensor::Dim dim : tensor::all_dims) {
    if (sample.shape[dim] < 1 || sample.shape[dim] > std::int64_t{1} << 31)
      fail(Exit::bad_data, "{}: an input of {} items in dim {}", file.path, sample.shape[dim], name_of(dim));
  }
  return sample;
}

/// Throws if the file says other shapes than come out.
void check_declared(const ModelFile& file, const Importer& importer) {
  for (const std::vector<Declared>* list : {&file.graph.values, &file.graph.outputs}) {
    for (const Declared& declared : *list) {
      if (!declared.extents) continue;
      const Value* value = importer.find(declared.name);
      const auto* view = value == nullptr ? nullptr : std::get_if<View>(value);
      if (view == nullptr) continue;
      const Extents found = extents_of(*view);
      bool same = found.size() == declared.extents->size();
      for (std::size_t i = 0; same && i < found.size(); ++i)
        same = (*declared.extents)[i] < 0 || (*declared.extents)[i] == found[i];
      if (!same) {
        fail(Exit::bad_data, "{}: '{}' has shape {} where the file says {}; please report it with the file", file.path,
             printable(declared.name), fmt::join(found, "x"), fmt::join(*declared.extents, "x"));
      }
    }
  }
}

std::string names_of(const std::vector<Declared>& outputs) {
  std::string names;
  for (const Declared& one : outputs) names += (names.empty() ? "'" : ", '") + printable(one.name) + "'";
  return names;
}

View output_of(const ModelFile& file, Importer& importer, const std::string& wanted) {
  const std::vector<Declared>& outputs = file.graph.outputs;
  if (wanted.empty() && outputs.size() != 1) {
    fail(Exit::usage, "{}: it has {} outputs: {}; choose one with --set output=NAME", file.path, outputs.size(),
         names_of(outputs));
  }
  const std::string& name = wanted.empty() ? outputs.front().name : wanted;
  const Value* value = importer.find(name);
  if (value == nullptr)
    fail(Exit::usage, "{}: no output '{}'; it has {}", file.path, printable(name), names_of(outputs));
  if (const auto* unknown = std::get_if<Unknown>(value)) return {unknown->item, {}};
  const auto* view = std::get_if<View>(value);
  if (view == nullptr) fail(Exit::bad_data, "{}: output '{}' is a constant", file.path, printable(name));
  const std::optional<View> plain = importer.plain(*view);
  if (!plain)
    fail(Exit::bad_data,
         "{}: output '{}' is no tensor of samples, channels and space; choose another with --set output=NAME",
         file.path, printable(name));
  return *plain;
}

/// Parameters of the file that the graph does not have: those of other outputs, and what is a constant here.
std::vector<std::string> left_out(const ModelFile& file, const Graph& graph) {
  std::set<std::string> used;
  for (const Parameter& parameter : parameters(graph)) used.insert(parameter.name);
  std::vector<std::string> names;
  for (const Tensor& tensor : file.graph.initializers) {
    if (is_parameter(constant_of(tensor, false)) && !used.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

std::string network_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  for (char& c : name) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!good) c = '_';
  }
  return name.empty() ? "network" : name.substr(0, 100);
}

}  // namespace

Graph load(const std::string& path, const NetworkOptions& options) {
  const Settings settings = read_settings(path, options.settings);
  const ModelFile file = read_model(path);
  if (file.opset < oldest || file.opset > newest)
    fail(Exit::bad_data, "{}: opset {}; {} to {} are supported: export with opset_version=17", path, file.opset, oldest,
         newest);
  const Declared& input = input_of(file);
  const InputShape sample = sample_of(file, input, options);
  Importer importer(file, sample.shape, sample.spatial_count);
  importer.run();
  if (options.input.empty()) check_declared(file, importer);
  const View output = output_of(file, importer, settings.output);
  Wanted wanted{.name = network_name(path),
                .output = output.item,
                .spatial_count = sample.spatial_count,
                .sample = sample.shape,
                .loss = settings.loss,
                .random_weights = settings.random_weights};
  wanted.sample.n = options.mini_batch;
  const bool default_loss = wanted.loss.terms.empty();
  if (default_loss) wanted.loss.terms.push_back({.kind = LossKind::mean_squared_error});
  Graph graph = build(file, importer, wanted);
  if (default_loss)
    graph.remarks.insert(graph.remarks.begin(),
                         "the loss is the mean squared error; choose another with --set loss=WORD");
  graph.left_out = left_out(file, graph);
  if (file.graph.outputs.size() > 1)
    graph.remarks.insert(graph.remarks.begin(),
                         fmt::format("output '{}' of {}", settings.output, names_of(file.graph.outputs)));
  graph.remarks.insert(graph.remarks.begin(),
                       settings.random_weights ? "weights start at random" : "weights start with those of the file");
  return graph;
}

}  // namespace orthant::model::onnx
