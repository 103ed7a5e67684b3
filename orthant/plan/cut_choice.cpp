#include "orthant/plan/cut_choice.hpp"

#include "orthant/model/work.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/plan/spatial.hpp"

#include <algorithm>

namespace orthant::plan {
namespace {

using model::Graph;
using tensor::Grid;
using Group = std::vector<int>;

/// Finds the grid of one group after the other; sources come before their readers.
class Chooser {
 public:
  Chooser(const Graph& graph, const CompactGrid& asked, const Fit& fit)
      : graph_(graph), asked_(dst_grid(asked)), ranks_(tensor::parts(asked_)), fit_(fit), grids_(graph.nodes.size()) {}

  std::vector<Grid> choose() {
    for (const Group& group : grid_groups(graph_)) {
      const Grid grid = choose(group);
      for (const int node : group) grids_[static_cast<std::size_t>(node)] = grid;
    }
    return std::move(grids_);
  }

 private:
  [[nodiscard]] const model::Node& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  [[nodiscard]] bool suits(const Group& group, const Grid& grid) const {
    return std::none_of(group.begin(), group.end(), [&](int node) { return fit_.misfit(node, grid).has_value(); });
  }
  [[nodiscard]] const tensor::Shape& shape(const Group& group) const { return node(group.front()).shape; }

  [[nodiscard]] Grid choose(const Group& group) const {
    for (const Grid& grid : preferred(group)) {
      if (suits(group, grid)) return grid;
    }
    const std::int64_t samples = std::min<std::int64_t>(shape(group).n, ranks_);
    const std::int64_t most = samples * std::min<std::int64_t>(most_channels(group), ranks_) * most_blocks(group);
    for (int ranks = static_cast<int>(std::min<std::int64_t>(ranks_, most)); ranks > 1; --ranks) {
      if (const Grid grid = mixed(group, ranks); tensor::parts(grid) == ranks) return grid;
    }
    return {};
  }

  /// Any grid of so many parts that suits the group; samples are cut first, then channels, then space.
  [[nodiscard]] Grid mixed(const Group& group, int ranks) const {
    const std::int64_t channels = most_channels(group);
    const std::int64_t blocks = most_blocks(group);
    for (int n = static_cast<int>(std::min<std::int64_t>(ranks, shape(group).n)); n >= 1; --n) {
      if (ranks % n != 0) continue;
      for (int c = static_cast<int>(std::min<std::int64_t>(ranks / n, channels)); c >= 1; --c) {
        if ((ranks / n) % c != 0 || ranks / n / c > blocks) continue;
        const Grid grid = in_space(group, {.n = n, .c = c}, ranks / n / c);
        if (tensor::parts(grid) == ranks) return grid;
      }
    }
    return {};
  }

  /// A bound of the number of parts into which channels can be cut.
  [[nodiscard]] std::int64_t most_channels(const Group& group) const {
    const bool together = std::any_of(group.begin(), group.end(), [&](int member) {
      const auto misfit = fit_.misfit(member, {.c = 2});
      return misfit && misfit->kind == Misfit::Kind::all_channels;
    });
    return together ? 1 : shape(group).c;
  }

  /// A bound of the number of blocks into which space can be cut.
  [[nodiscard]] std::int64_t most_blocks(const Group& group) const {
    std::int64_t blocks = 1;
    for (const tensor::Dim dim : tensor::spatial_dims) blocks *= fit_.most_parts(group.front(), dim);
    return blocks;
  }

  /// Layers are cut as asked, or else as what they read; other ops the other way round.
  [[nodiscard]] std::vector<Grid> preferred(const Group& group) const {
    std::vector<Grid> grids{asked_};
    const auto& srcs = node(group.front()).srcs;
    if (!srcs.empty() && tensor::parts(grids_[static_cast<std::size_t>(srcs.front())]) == ranks_) {
      const bool layer = std::any_of(group.begin(), group.end(), [&](int member) { return computes(node(member).op); });
      const bool dense = std::holds_alternative<model::Dense>(node(group.front()).op);
      if (!dense) grids.insert(layer ? grids.end() : grids.begin(), grids_[static_cast<std::size_t>(srcs.front())]);
    }
    const Grid channels{.n = asked_.n, .c = ranks_ / asked_.n};
    const Grid samples{.n = ranks_};
    grids.push_back(samples_first(group) ? samples : channels);
    grids.push_back(samples_first(group) ? channels : samples);
    const Grid space = in_space(group, {.n = asked_.n}, ranks_ / asked_.n);
    if (tensor::parts(space) == ranks_) grids.push_back(space);
    return grids;
  }

  /// True for dense layers that have more activations than weights: those would move, not the gradients.
  [[nodiscard]] bool samples_first(const Group& group) const {
    const model::Node& first = node(group.front());
    if (!std::holds_alternative<model::Dense>(first.op)) return false;
    const tensor::Shape& src = node(first.srcs.front()).shape;
    return model::work_of(graph_, group.front()).parameters < tensor::volume(src) + tensor::volume(first.shape);
  }

  /// `grid` with its space cut into `blocks`, if that suits the group; one part otherwise.
  [[nodiscard]] Grid in_space(const Group& group, Grid grid, int blocks) const {
    for (const Grid& space : spatial_grids(shape(group), blocks)) {
      for (const tensor::Dim dim : tensor::spatial_dims) grid[dim] = space[dim];
      if (suits(group, grid)) return grid;
    }
    return {};
  }

  const Graph& graph_;
  Grid asked_;
  int ranks_;
  const Fit& fit_;
  std::vector<Grid> grids_;
};

}  // namespace

std::vector<Cut> choose_cuts(const Graph& graph, const CompactGrid& asked, const Fit& fit) {
  std::vector<Cut> cuts;
  for (const Grid& grid : Chooser(graph, asked, fit).choose()) {
    const model::Node& node = graph.nodes[cuts.size()];
    Cut cut{.grid = grid, .channel_parts = 1};
    const bool enough =
        sums_channels(node.op) && graph.nodes[static_cast<std::size_t>(node.srcs.front())].shape.c >= grid.c;
    if (enough && grid.c == asked.f * asked.c) cut.channel_parts = asked.c;
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace orthant::plan
