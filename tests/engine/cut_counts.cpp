#include "tests/engine/cut_counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orthant::test {
namespace {

void add_blocks(const tensor::Distribution& blocks, int ranks, std::set<std::string>& cuts) {
  std::vector<tensor::Shape> extents;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!tensor::takes_part(blocks, rank)) {
      cuts.insert("idle");
      continue;
    }
    const tensor::Box box = tensor::owned_box(blocks, rank);
    if (tensor::is_empty(box)) cuts.insert("empty");
    extents.push_back(tensor::extents_of(box));
  }
  if (std::any_of(extents.begin(), extents.end(), [&](const tensor::Shape& other) { return other != extents.front(); }))
    cuts.insert("uneven");
}

void add_grid(const plan::NodePlan& node, bool has_weights, std::set<std::string>& cuts) {
  constexpr const char* names[]{"n", "c", "d", "h", "w"};
  for (const tensor::Dim dim : tensor::all_dims)
    if (node.grid[dim] > 1) cuts.insert(names[static_cast<std::size_t>(dim)]);
  if (has_weights && node.grid.c > node.channel_parts) cuts.insert("filters");
  if (node.channel_parts > 1) cuts.insert("channel_parts");
  for (const model::Pass pass : model::all_passes) {
    for (const model::ConvPiece& piece : node.kernels[pass].pieces) cuts.insert(piece.slabs > 1 ? "slabs" : "pieces");
  }
}

}  // namespace

void CutCounts::add(const model::Graph& graph, const plan::Plan& plan) {
  std::set<std::string> cuts;
  std::set<int> stages;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const plan::NodePlan& node = plan.nodes[i];
    const model::Op& op = graph.nodes[i].op;
    const bool has_weights = std::holds_alternative<model::Conv>(op) || std::holds_alternative<model::Dense>(op) ||
                             std::holds_alternative<model::ConvTranspose>(op);
    add_grid(node, has_weights, cuts);
    add_blocks(plan::distribution(plan, graph, static_cast<int>(i)), plan.ranks, cuts);
    stages.insert(node.stage);
    for (const int src : graph.nodes[i].srcs) {
      const plan::NodePlan& source = plan.nodes[static_cast<std::size_t>(src)];
      if (source.grid != node.grid || source.first_rank != node.first_rank) cuts.insert("redistributed");
    }
  }
  if (stages.size() > 1) cuts.insert("stages");
  if (plan.micro_batches > 1) cuts.insert("micro_batches");
  ++plans_;
  for (const std::string& cut : cuts) ++counts_[cut];
}

int CutCounts::count(const std::string& name) const { return counts_.contains(name) ? counts_.at(name) : 0; }

void CutCounts::expect_percent(const std::map<std::string, int>& least) const {
  for (const auto& [name, percent] : least)
    EXPECT_GE(100 * count(name), percent * plans_) << name << " in " << count(name) << " of " << plans_ << " plans";
}

void CutCounts::expect_plans(const std::map<std::string, int>& least) const {
  for (const auto& [name, plans] : least) EXPECT_GE(count(name), plans) << name << ", of " << plans_ << " plans";
}

}  // namespace orthant::test
