#include "orthant/plan/stages.hpp"

#include "orthant/model/network.hpp"
#include "orthant/model/work.hpp"
#include "orthant/plan/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::plan {
namespace {

model::Graph network(const std::string& name, const std::string& input, std::int64_t mini_batch) {
  return model::load_network(name, {.input = input, .mini_batch = mini_batch});
}

std::int64_t largest_stage(const model::Graph& graph, const std::vector<int>& stages) {
  std::vector<std::int64_t> sums(graph.nodes.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    sums[static_cast<std::size_t>(stages[i])] += model::work_of(graph, static_cast<int>(i)).flops;
  }
  return *std::max_element(sums.begin(), sums.end());
}

/// The best of all ways to choose `stages` - 1 borders, by trying them.
std::int64_t best_by_trying(const model::Graph& graph, const std::vector<bool>& borders, std::vector<int>& stages,
                            std::size_t node, int left) {
  if (left == 0) {
    return largest_stage(graph, stages);
  }
  std::int64_t best = -1;
  for (std::size_t i = node; i < stages.size(); ++i) {
    if (!borders[i]) continue;
    std::vector<int> next = stages;
    for (std::size_t j = i; j < next.size(); ++j) ++next[j];
    const std::int64_t found = best_by_trying(graph, borders, next, i + 1, left - 1);
    if (found >= 0 && (best < 0 || found < best)) best = found;
  }
  return best;
}

TEST(Stages, LargestIsAsSmallAsItCanBe) {
  for (const char* name : {"cosmoflow", "cosmoflow-mlperf", "unet3d"}) {
    const model::Graph graph = network(name, "4x32x32x32", 1);
    for (int stages = 1; stages <= 3; ++stages) {
      std::vector<int> none(graph.nodes.size(), 0);
      EXPECT_EQ(largest_stage(graph, balanced_stages(graph, stages)),
                best_by_trying(graph, stage_borders(graph), none, 1, stages - 1))
          << name << " " << stages;
    }
  }
}

TEST(Stages, AreRunsOfWholeLayersWithWork) {
  const model::Graph graph = network("resnet50", "3x64x64", 1);
  const std::vector<bool> borders = stage_borders(graph);
  for (int stages = 1; stages <= most_stages(graph); ++stages) {
    const std::vector<int> found = balanced_stages(graph, stages);
    EXPECT_EQ(found.front(), 0);
    EXPECT_EQ(found.back(), stages - 1);
    std::vector<std::int64_t> flops(static_cast<std::size_t>(stages));
    for (std::size_t i = 0; i < found.size(); ++i) {
      flops[static_cast<std::size_t>(found[i])] += model::work_of(graph, static_cast<int>(i)).flops;
      if (i == 0) continue;
      EXPECT_TRUE(found[i] == found[i - 1] || (found[i] == found[i - 1] + 1 && borders[i]));
    }
    EXPECT_GT(*std::min_element(flops.begin(), flops.end()), 0) << stages;
  }
}

TEST(Stages, PoolsStayBeforeTheBorder) {
  const model::Graph graph = network("cosmoflow", "4x64x64x64", 1);
  const std::vector<int> stages = balanced_stages(graph, 3);
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (std::holds_alternative<model::Pool>(graph.nodes[i].op)) {
      EXPECT_EQ(stages[i], stages[i - 1]);
    }
  }
}

TEST(Stages, PiecesAreEqualIfTheyCanBe) {
  const auto pieces = [](std::int64_t samples, int stages, int parts) {
    return pipeline_pieces(network("cosmoflow", "4x32x32x32", samples), stages, parts);
  };
  EXPECT_EQ(pieces(8, 1, 1), 1);
  EXPECT_EQ(pieces(1, 4, 1), 1);
  EXPECT_EQ(pieces(8, 4, 1), 8);
  EXPECT_EQ(pieces(8, 3, 1), 4);
  EXPECT_EQ(pieces(32, 3, 1), 4);
  EXPECT_EQ(pieces(12, 4, 2), 6);
  EXPECT_EQ(pieces(7, 2, 1), 4);
}

}  // namespace
}  // namespace orthant::plan
