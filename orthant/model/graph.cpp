#include "orthant/model/graph.hpp"

#include "orthant/base/checked.hpp"
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

void check_flat(const tensor::Window& window) {
  const bool flat = window.size.d == 1 && window.stride.d == 1 && window.dilation.d == 1 && window.pad_lo.d == 0 &&
                    window.pad_hi.d == 0;
  if (!flat)
    fail(Exit::bad_data,
         "a window with depth in a 2-D network; its size, stride and dilation must be 1 and its padding 0 in dim d");
}

/// Throws if an op of a 2-D network would reach into depth.
struct FlatCheck {
  void operator()(const UnderWindow& map) const { check_flat(map.window); }
  void operator()(const UnderTransposedWindow& map) const {
    check_flat(map.window);
    if (map.output_padding.d != 0)
      fail(Exit::bad_data, "output_padding {} in dim d of a 2-D network; it must be 0", map.output_padding.d);
  }
  void operator()(const AlongAxes& map) const {
    // Nothing may happen to the one cell of depth: any rule that keeps it will do.
    const tensor::AxisRule& rule = map.rules.front();
    if (rule.first != 0 || rule.step != 1)
      fail(Exit::bad_data, "it slices or pads dim d of a 2-D network; leave d as it is");
  }
  template <base::OneOf<NoSource, SameCells, WholeSpace, BroadcastCells, ConcatenatedChannels, FlattenedChannels> Other>
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

void check_all_read(const Graph& graph) {
  std::vector<bool> read(graph.nodes.size(), false);
  for (const Node& node : graph.nodes) {
    for (const int src : node.srcs) read[src] = true;
  }
  for (std::size_t i = 0; i + 1 < graph.nodes.size(); ++i) {
    if (!read[i])
      fail(Exit::bad_data, "{}: {}: no layer reads it, and only the last layer is the output; remove it or read it",
           graph.name, graph.nodes[i].name);
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
  if (spatial_count != 2 && spatial_count != 3)
    fail(Exit::bad_data, "{}: {} spatial dims; 2 or 3 are supported", graph_.name, spatial_count);
  for (const tensor::Dim dim : tensor::all_dims) {
    if (sample[dim] < 1)
      fail(Exit::bad_data, "{}: input: {} items in dim {}; at least 1 is needed", graph_.name, sample[dim],
           name_of(dim));
  }
  if (spatial_count == 2 && sample.d != 1)
    fail(Exit::bad_data, "{}: input: depth {} in a 2-D network; it takes CxHxW", graph_.name, sample.d);
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
    if (graph_.spatial_count == 2) std::visit(FlatCheck{}, traits_of(op).reads);
    const Shape shape = infer_shape(op, shapes_of(graph_, srcs));
    if (graph_.spatial_count == 2 && shape.d != 1)
      fail(Exit::bad_data, "it makes {} cells in dim d of a 2-D network; leave d as it is", shape.d);
    graph_.nodes.push_back({.name = name, .op = op, .srcs = std::move(srcs), .shape = shape});
    work_of(graph_, last());
  } catch (const base::Error& error) {
    fail(error.code(), "{}: {}: {}", graph_.name, printable(name, longest_name), error.what());
  }
  return last();
}

int GraphBuilder::add(const std::string& name, const Op& op) { return add(name, op, {last()}); }

const Shape& GraphBuilder::shape(int node) const { return graph_.nodes.at(node).shape; }

Graph GraphBuilder::finish(Loss loss) {
  if (graph_.nodes.size() < 2) fail(Exit::bad_data, "{}: it has no layers; add at least one", graph_.name);
  check_all_read(graph_);
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
