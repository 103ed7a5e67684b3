#include "orthant/model/graph.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/base/one_of.hpp"
#include "orthant/model/printable.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/model/work.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;
using tensor::Shape;

constexpr std::size_t longest_name = 200;

bool takes_labels(LossKind kind) { return kind == LossKind::cross_entropy || kind == LossKind::soft_dice; }

void check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (name.empty()) fail(Exit::bad_data, "an empty name; give every layer one");
  if (name.size() > longest_name) {
    fail(Exit::bad_data, "a name of {} characters; at most {} are supported", name.size(), longest_name);
  }
  if (!std::all_of(name.begin(), name.end(), allowed)) {
    fail(Exit::bad_data, "a name with other characters than letters, digits, '_', '-' and '.'; rename it");
  }
}

/// Throws if an op would reach into a dim that the network does not name.
struct FlatCheck {
  int spatial_count;
  tensor::Dim dim;

  void check(const tensor::Window& window) const {
    const bool flat = window.size[dim] == 1 && window.stride[dim] == 1 && window.dilation[dim] == 1 &&
                      window.pad_lo[dim] == 0 && window.pad_hi[dim] == 0;
    if (!flat) {
      fail(Exit::bad_data,
           "a window with {} in a {}-D network; its size, stride and dilation must be 1 and its padding 0 in dim {}",
           dim == tensor::Dim::d ? "depth" : "height", spatial_count, name_of(dim));
    }
  }
  void operator()(const UnderWindow& map) const { check(map.window); }
  void operator()(const UnderTransposedWindow& map) const {
    check(map.window);
    if (map.output_padding[dim] != 0)
      fail(Exit::bad_data, "output_padding {} in dim {} of a {}-D network; it must be 0", map.output_padding[dim],
           name_of(dim), spatial_count);
  }
  void operator()(const AlongAxes& map) const {
    // Nothing may happen to the one cell of the dim: any rule that keeps it will do.
    const tensor::AxisRule& rule = rule_of(map, dim);
    if (rule.first != 0 || rule.step != 1)
      fail(Exit::bad_data, "it slices or pads dim {} of a {}-D network; leave {} as it is", name_of(dim), spatial_count,
           name_of(dim));
  }
  /// What it makes of the dim shows in its shape.
  template <base::OneOf<NoSource, SameCells, WholeSpace, BroadcastCells, ShuffledChannels, CellBlocks,
                        ConcatenatedChannels, FlattenedChannels>
                Other>
  void operator()(const Other&) const {}
};

std::vector<Shape> shapes_of(const Graph& graph, const std::vector<int>& srcs) {
  std::vector<Shape> shapes;
  for (const int src : srcs) {
    if (src < 0 || src >= static_cast<int>(graph.nodes.size()))
      fail(Exit::bad_data, "reads node {}, which does not come before it", src);
    shapes.push_back(graph.nodes[src].shape);
  }
  return shapes;
}

/// Throws if there is a layer that nobody reads and that is no output.
void check_all_read(const Graph& graph) {
  std::vector<bool> read(graph.nodes.size(), false);
  for (const Node& node : graph.nodes) {
    for (const int src : node.srcs) read[src] = true;
  }
  if (graph.outputs.empty()) read.back() = true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (read[i] || std::find(graph.outputs.begin(), graph.outputs.end(), node.name) != graph.outputs.end()) continue;
    fail(Exit::bad_data, "{}: {}: no layer reads it, and {}; remove it or read it", graph.name, node.name,
         graph.outputs.empty() ? "only the last layer is the output" : "it is not among the outputs");
  }
}

/// The node of this name, or -1.
int find_node(const Graph& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.name == name; });
  return found == graph.nodes.end() ? -1 : static_cast<int>(found - graph.nodes.begin());
}

/// Throws if outputs are no layers, or named twice.
void check_outputs(const Graph& graph) {
  std::unordered_set<std::string> seen;
  for (const std::string& output : graph.outputs) {
    if (find_node(graph, output) < 1)
      fail(Exit::bad_data, "{}: outputs: there is no layer '{}'; name layers", graph.name, printable(output));
    if (!seen.insert(output).second)
      fail(Exit::bad_data, "{}: outputs: '{}' is there twice; name every output once", graph.name, output);
  }
}

void check_loss(const Loss& loss, const Shape& output) {
  if (loss.terms.empty()) fail(Exit::bad_data, "there is no loss; give at least one term");
  for (const LossTerm& term : loss.terms) {
    if (!std::isfinite(term.weight))
      fail(Exit::bad_data, "the weight of {} is {}; it must be a finite number", name_of(term.kind), term.weight);
    if (takes_labels(term.kind) != takes_labels(loss.terms.front().kind)) {
      fail(Exit::bad_data, "{} takes {} and {} takes {}; all terms must take the same",
           name_of(loss.terms.front().kind), takes_labels(loss.terms.front().kind) ? "labels" : "values",
           name_of(term.kind), takes_labels(term.kind) ? "labels" : "values");
    }
  }
  if (takes_labels(loss) && output.c < 2) {
    fail(Exit::bad_data, "{} needs an output of at least 2 channels, one per class, but it has {}",
         name_of(loss.terms.front().kind), output.c);
  }
}

}  // namespace

const char* name_of(LossKind kind) {
  switch (kind) {
    case LossKind::mean_squared_error: return "mean_squared_error";
    case LossKind::mean_absolute_error: return "mean_absolute_error";
    case LossKind::cross_entropy: return "cross_entropy";
    case LossKind::soft_dice: return "soft_dice";
  }
  return "";
}

bool takes_labels(const Loss& loss) { return !loss.terms.empty() && takes_labels(loss.terms.front().kind); }

GraphBuilder::GraphBuilder(std::string name, int spatial_count, const Shape& sample) {
  try {
    check_name(name);
  } catch (const base::Error& error) {
    fail(error.code(), "the network has {}", error.what());
  }
  graph_.name = std::move(name);
  graph_.spatial_count = spatial_count;
  if (spatial_count < 1 || spatial_count > 3)
    fail(Exit::bad_data, "{}: {} spatial dims; 1 to 3 are supported", graph_.name, spatial_count);
  for (const tensor::Dim dim : tensor::all_dims) {
    if (sample[dim] < 1)
      fail(Exit::bad_data, "{}: input: {} items in dim {}; at least 1 is needed", graph_.name, sample[dim],
           name_of(dim));
  }
  for (const tensor::Dim dim : tensor::flat_dims(spatial_count)) {
    if (sample[dim] != 1)
      fail(Exit::bad_data, "{}: input: {} {} in a {}-D network; it takes {}", graph_.name,
           dim == tensor::Dim::d ? "depth" : "height", sample[dim], spatial_count,
           spatial_count == 2 ? "CxHxW" : "CxW");
  }
  graph_.nodes.push_back({.name = "input", .op = Input{}, .srcs = {}, .shape = sample});
  try {
    work_of(graph_, 0);
  } catch (const base::Error& error) {
    fail(error.code(), "{}: input: {}", graph_.name, error.what());
  }
}

int GraphBuilder::add(const std::string& name, const Op& op, std::vector<int> srcs) {
  try {
    check_name(name);
    const bool taken = !names_.insert(name).second;
    if (taken || name == graph_.nodes.front().name)
      fail(Exit::bad_data, "a second layer of this name; names must be unique");
    const IndexMap reads = traits_of(op).reads;
    for (const tensor::Dim dim : tensor::flat_dims(graph_.spatial_count))
      std::visit(FlatCheck{graph_.spatial_count, dim}, reads);
    const Shape shape = infer_shape(op, shapes_of(graph_, srcs));
    for (const tensor::Dim dim : tensor::flat_dims(graph_.spatial_count)) {
      if (shape[dim] != 1)
        fail(Exit::bad_data, "it makes {} cells in dim {} of a {}-D network; leave {} as it is", shape[dim],
             name_of(dim), graph_.spatial_count, name_of(dim));
    }
    graph_.nodes.push_back({.name = name, .op = op, .srcs = std::move(srcs), .shape = shape});
    work_of(graph_, last());
  } catch (const base::Error& error) {
    fail(error.code(), "{}: {}: {}", graph_.name, printable(name, longest_name), error.what());
  }
  return last();
}

int GraphBuilder::add(const std::string& name, const Op& op) { return add(name, op, {last()}); }

const Shape& GraphBuilder::shape(int node) const { return graph_.nodes.at(node).shape; }

void GraphBuilder::keep_only(const std::string& output) {
  const int chosen = find_node(graph_, output);
  std::vector<bool> needed(graph_.nodes.size(), false);
  needed.front() = needed[static_cast<std::size_t>(chosen)] = true;
  for (int i = chosen; i > 0; --i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    for (const int src : graph_.nodes[static_cast<std::size_t>(i)].srcs) needed[static_cast<std::size_t>(src)] = true;
  }
  for (const Parameter& parameter : parameters(graph_)) {
    if (!needed[static_cast<std::size_t>(parameter.node)]) graph_.left_out.push_back(parameter.name);
  }
  std::vector<Node> kept;
  std::vector<int> place(graph_.nodes.size(), -1);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!needed[i]) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(graph_.nodes[i]));
    for (int& src : kept.back().srcs) src = place[static_cast<std::size_t>(src)];
  }
  graph_.nodes = std::move(kept);
}

Graph GraphBuilder::finish(Loss loss, std::vector<std::string> outputs, const std::string& chosen) {
  graph_.outputs = std::move(outputs);
  check_outputs(graph_);
  check_all_read(graph_);
  const std::vector<std::string>& names = graph_.outputs;
  if (std::find(names.begin(), names.end(), chosen) == names.end())
    fail(Exit::bad_data, "{}: no output '{}'{}", graph_.name, printable(chosen), base::suggestion(chosen, names));
  keep_only(chosen);
  return finish(std::move(loss));
}

std::string title_of(const Graph& graph) {
  if (graph.outputs.size() < 2) return graph.name;
  return fmt::format("{}, output {} of {}", graph.name, graph.nodes.back().name, fmt::join(graph.outputs, ", "));
}

Graph GraphBuilder::finish(Loss loss) {
  if (graph_.nodes.size() < 2) fail(Exit::bad_data, "{}: it has no layers; add at least one", graph_.name);
  if (graph_.outputs.empty()) check_all_read(graph_);
  try {
    work_of(graph_);
  } catch (const base::Error& error) {
    fail(error.code(), "{}: all layers together: {}", graph_.name, error.what());
  }
  try {
    check_loss(loss, graph_.nodes.back().shape);
  } catch (const base::Error& error) {
    fail(error.code(), "{}: loss: {}", graph_.name, error.what());
  }
  graph_.loss = std::move(loss);
  return std::move(graph_);
}

Shape target_shape(const Graph& graph) {
  Shape shape = graph.nodes.back().shape;
  if (takes_labels(graph.loss)) shape.c = 1;
  return shape;
}

}  // namespace orthant::model
