#include "orthant/base/format.hpp"
#include "orthant/model/traits.hpp"
#include "orthant/model/work.hpp"
#include "orthant/plan/fit.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/plan/strategy.hpp"

#include <algorithm>
#include <optional>

namespace orthant::plan {
namespace {

using model::Graph;
using tensor::Grid;

/// Why a node is not cut as asked.
struct Reason {
  std::string text;
  int kind = 0;  ///< equal for reasons that can share a line
};

constexpr int few_channels = -1;
constexpr int unknown = -2;

CompactGrid compact(const NodePlan& node) {
  return {.n = node.grid.n,
          .f = node.grid.c / node.channel_parts,
          .c = node.channel_parts,
          .d = node.grid.d,
          .h = node.grid.h,
          .w = node.grid.w};
}

/// A run of nodes with one cut and one reason.
struct Run {
  std::size_t first = 0, last = 0;
  Reason reason;
};

class Remarks {
 public:
  Remarks(const Plan& plan, const Graph& graph, const CompactGrid& asked)
      : plan_(plan),
        graph_(graph),
        asked_(asked),
        fit_(graph, graph.nodes.front().shape.n / plan.micro_batches),
        groups_(grid_groups(graph)) {}

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<Run> runs;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      const std::optional<Reason> reason = reason_of(i);
      if (!reason) continue;
      if (!runs.empty() && runs.back().last + 1 == i && runs.back().reason.kind == reason->kind &&
          same_cut(plan_.nodes[i], plan_.nodes[runs.back().last])) {
        runs.back().last = i;
      } else {
        runs.push_back({.first = i, .last = i, .reason = *reason});
      }
    }
    std::vector<std::string> lines;
    lines.reserve(runs.size());
    for (const Run& run : runs) lines.push_back(line_of(run));
    return lines;
  }

 private:
  static bool same_cut(const NodePlan& a, const NodePlan& b) { return a.grid == b.grid && a.stage == b.stage; }

  [[nodiscard]] std::optional<Reason> reason_of(std::size_t i) const {
    const NodePlan& node = plan_.nodes[i];
    if (node.grid == dst_grid(asked_)) {
      if (!sums_channels(graph_.nodes[i].op) || node.channel_parts == asked_.c) return {};
      const auto src = static_cast<std::size_t>(graph_.nodes[i].srcs.front());
      return Reason{
          fmt::format("{} channels to sum over, too few for {} parts", graph_.nodes[src].shape.c, asked_.f * asked_.c),
          few_channels};
    }
    const Grid grid = dst_grid(asked_);
    if (const auto misfit = fit_.misfit(static_cast<int>(i), grid)) return from(*misfit);
    for (const auto& group : groups_) {
      if (std::find(group.begin(), group.end(), static_cast<int>(i)) == group.end()) continue;
      for (const int other : group) {
        if (const auto misfit = fit_.misfit(other, grid)) return from(*misfit);
      }
    }
    return Reason{"as its neighbours", unknown};
  }

  static Reason from(const Misfit& misfit) { return {to_text(misfit), static_cast<int>(misfit.kind)}; }

  [[nodiscard]] std::string line_of(const Run& run) const {
    std::string nodes = plan_.nodes[run.first].node;
    if (run.last != run.first) nodes += " to " + plan_.nodes[run.last].node;
    return fmt::format("{}: {}; {}", nodes, run.reason.text, action(plan_.nodes[run.first]));
  }

  [[nodiscard]] std::string action(const NodePlan& node) const {
    const int ranks = stage_ranks(asked_);
    const int used = tensor::parts(node.grid);
    if (used == 1) return fmt::format("on 1 of {} ranks", ranks);
    const std::string text = to_text(compact(node));
    if (used < ranks) return fmt::format("on {} of {} ranks ({})", used, ranks, text);
    const bool space = node.grid.d * node.grid.h * node.grid.w > 1;
    const char* axes = node.grid.c == 1 ? (space ? "space" : "samples") : (space ? "filters and space" : "filters");
    return fmt::format("cut over {} ({}) instead", axes, text);
  }

  const Plan& plan_;
  const Graph& graph_;
  CompactGrid asked_;
  Fit fit_;
  std::vector<std::vector<int>> groups_;
};

bool has_norm(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const model::Node& node) { return model::traits_of(node.op).batch_statistics; });
}

}  // namespace

std::vector<std::string> remarks(const Plan& plan, const Graph& graph, const CompactGrid& asked) {
  std::vector<std::string> lines = Remarks(plan, graph, asked).lines();
  if (plan.micro_batches > 1 && has_norm(graph)) {
    lines.push_back(
        fmt::format("batch normalisation: its statistics cover one of {} micro-batches at a time", plan.micro_batches));
  }
  return lines;
}

std::vector<std::string> remarks(const Plan& plan, const Graph& graph) {
  return remarks(plan, graph, main_grid(plan, graph));
}

CompactGrid main_grid(const Plan& plan, const Graph& graph) {
  const model::GraphWork work = model::work_of(graph);
  std::vector<std::pair<CompactGrid, double>> sums;
  int stages = 1;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    stages = std::max(stages, plan.nodes[i].stage + 1);
    const CompactGrid grid = compact(plan.nodes[i]);
    auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == grid; });
    if (found == sums.end()) found = sums.insert(sums.end(), {grid, 0});
    found->second += static_cast<double>(work.nodes[i].flops);
  }
  const auto largest =
      std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  CompactGrid result = largest == sums.end() ? CompactGrid{} : largest->first;
  result.p = stages;
  return result;
}

}  // namespace orthant::plan
