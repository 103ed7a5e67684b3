#include "orthant/plan/plan.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <utility>

namespace orthant::plan {
namespace {

/// A run of nodes that are cut alike, as the cells of a table.
using Row = std::vector<std::string>;

bool alike(const NodePlan& a, const NodePlan& b) {
  return a.grid == b.grid && a.first_rank == b.first_rank && a.channel_parts == b.channel_parts && a.stage == b.stage &&
         a.statistics == b.statistics;
}

std::string algorithm_of(const NodePlan& node) {
  if (node.channel_parts == 1) return "";
  if (node.channel_parts == node.grid.c) return "stationary-x";
  return fmt::format("stationary-w, {} channel parts", node.channel_parts);
}

std::string statistics_of(const NodePlan& node) {
  if (node.statistics == Statistics::global) return "";
  return node.statistics == Statistics::local ? "local statistics" : "spatial statistics";
}

Row row_of(const NodePlan& first, const NodePlan& last) {
  const int end = first.first_rank + tensor::parts(first.grid) - 1;
  return {first.node == last.node ? first.node : fmt::format("{} to {}", first.node, last.node),
          tensor::to_text(first.grid),
          end == first.first_rank ? fmt::format("{}", end) : fmt::format("{}-{}", first.first_rank, end),
          fmt::format("{}", first.stage),
          algorithm_of(first),
          statistics_of(first)};
}

/// Columns as wide as their widest cell; those that say nothing are left out.
std::string aligned(const std::vector<Row>& rows, const std::vector<bool>& shown) {
  std::vector<std::size_t> widths(shown.size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (shown[i]) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

const KernelChoice& KernelChoices::operator[](model::Pass pass) const {
  switch (pass) {
    case model::Pass::forward: return forward;
    case model::Pass::backward_data: return backward_data;
    case model::Pass::backward_weights: break;
  }
  return backward_weights;
}

KernelChoice& KernelChoices::operator[](model::Pass pass) {
  return const_cast<KernelChoice&>(std::as_const(*this)[pass]);
}

Plan serial_plan(const model::Graph& graph) {
  Plan plan;
  for (const model::Node& node : graph.nodes) plan.nodes.push_back({.node = node.name, .grid = {}});
  return plan;
}

std::string to_text(const Plan& plan) {
  std::vector<Row> rows{{"nodes", "grid", "ranks", "stage", "algorithm", "statistics"}};
  std::vector<bool> shown{true, true, true, false, false, false};
  for (std::size_t first = 0; first < plan.nodes.size();) {
    std::size_t end = first + 1;
    while (end < plan.nodes.size() && alike(plan.nodes[first], plan.nodes[end])) ++end;
    rows.push_back(row_of(plan.nodes[first], plan.nodes[end - 1]));
    shown[3] = shown[3] || plan.nodes[first].stage > 0;
    for (const std::size_t column : {std::size_t{4}, std::size_t{5}}) {
      shown[column] = shown[column] || !rows.back()[column].empty();
    }
    first = end;
  }
  const std::string pieces = plan.micro_batches > 1 ? fmt::format(", {} micro-batches", plan.micro_batches) : "";
  return fmt::format("{} rank{}{}\n", plan.ranks, plan.ranks == 1 ? "" : "s", pieces) + aligned(rows, shown);
}

}  // namespace orthant::plan
