#include "orthant/plan/groups.hpp"

#include "orthant/model/traits.hpp"
#include "orthant/plan/fit.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace orthant::plan {
namespace {

using model::Graph;
using model::Node;

const Node& at(const Graph& graph, int node) { return graph.nodes[static_cast<std::size_t>(node)]; }

std::vector<int> reader_counts(const Graph& graph) {
  std::vector<int> counts(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (const int src : node.srcs) ++counts[static_cast<std::size_t>(src)];
  }
  return counts;
}

/// The source whose kernel a cellwise node rides on, or -1: one that nobody else reads, a normalisation before others.
int fused_source(const Graph& graph, const std::vector<int>& readers, int node) {
  int found = -1;
  for (const int src : at(graph, node).srcs) {
    if (readers[static_cast<std::size_t>(src)] != 1) continue;
    if (found < 0 || model::traits_of(at(graph, src).op).takes_residual) found = src;
  }
  return found;
}

/// The sources that a node is grouped with. Those of the output's own layer are only what it is fused with: the output
/// is cut in other ways than what comes before it.
std::vector<int> grouped_sources(const Graph& graph, const std::vector<int>& readers, int node, bool in_output) {
  if (!model::is_cellwise(model::traits_of(at(graph, node).op))) return {};
  if (!in_output) return at(graph, node).srcs;
  const int fused = fused_source(graph, readers, node);
  return fused < 0 ? std::vector<int>{} : std::vector<int>{fused};
}

int root(std::vector<int>& parents, int node) {
  while (parents[static_cast<std::size_t>(node)] != node) node = parents[static_cast<std::size_t>(node)];
  return node;
}

}  // namespace

std::vector<std::vector<int>> grid_groups(const Graph& graph) {
  const std::vector<int> readers = reader_counts(graph);
  std::vector<int> parents(graph.nodes.size());
  std::iota(parents.begin(), parents.end(), 0);
  int output = static_cast<int>(graph.nodes.size()) - 1;
  for (int node = output; node >= 0; --node) {
    const bool in_output = node == output;
    const std::vector<int> sources = grouped_sources(graph, readers, node, in_output);
    for (const int src : sources) {
      const int a = root(parents, src);
      const int b = root(parents, node);
      parents[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
    if (in_output && !sources.empty()) output = sources.front();
  }
  std::map<int, std::vector<int>> groups;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) groups[root(parents, node)].push_back(node);
  std::vector<std::vector<int>> sorted;
  sorted.reserve(groups.size());
  for (auto& [first, nodes] : groups) sorted.push_back(std::move(nodes));
  return sorted;
}

std::vector<bool> stage_borders(const Graph& graph) {
  const std::vector<int> readers = reader_counts(graph);
  std::vector<bool> borders(graph.nodes.size(), true);
  bool computed = false;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    if (!computed) borders[static_cast<std::size_t>(node)] = false;
    computed = computed || computes(at(graph, node).op);
    if (!model::is_cellwise(model::traits_of(at(graph, node).op))) continue;
    const int source = fused_source(graph, readers, node);
    for (int inside = source + 1; source >= 0 && inside <= node; ++inside) {
      borders[static_cast<std::size_t>(inside)] = false;
    }
  }
  return borders;
}

}  // namespace orthant::plan
