#include "orthant/train/speakers.hpp"

#include "orthant/model/network.hpp"
#include "orthant/plan/share.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/train/small_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::train {
namespace {

/// Every rank that is the first holder of its shard, found by asking all of them.
std::vector<int> first_holders(const plan::Plan& plan, const model::Graph& graph, int node) {
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto holders = plan::shard_holders(plan, graph, node, rank);
    if (holders.size() > 0 && holders[0] == rank) ranks.push_back(rank);
  }
  return ranks;
}

TEST(Speakers, AreTheFirstHoldersOfEveryShard) {
  const model::Graph graph = test::small_graph(4);
  for (const char* grid : {"1", "n4", "d2", "n2d2", "f3", "n2f2", "f2d2", "c2", "c2f2", "n2c2f2", "p2", "n2p2"}) {
    const plan::Plan plan = plan::make_plan(graph, plan::parse_grid(grid));
    for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
      const std::vector<int> expected = first_holders(plan, graph, node);
      EXPECT_EQ(speakers_of(plan, graph, node), expected) << grid << " node " << node;
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const bool speaking = std::find(expected.begin(), expected.end(), rank) != expected.end();
        EXPECT_EQ(speaks(plan, graph, node, rank), speaking) << grid << " node " << node << " rank " << rank;
      }
    }
  }
}

TEST(Speakers, AreAsManyAsShardsWhateverTheNumberOfRanks) {
  const model::Graph graph = model::load_network("resnet50", {.input = "3x64x64", .mini_batch = 2048, .settings = {}});
  const plan::Plan data = plan::make_plan(graph, plan::parse_grid("n2048"));
  const plan::Plan filters = plan::make_plan(graph, plan::parse_grid("n256f8"));
  for (const model::Parameter& parameter : model::parameters(graph)) {
    EXPECT_EQ(speakers_of(data, graph, parameter.node), std::vector<int>{0}) << parameter.name;
    // The last layer has 1000 filters, and is not cut.
    const bool is_cut = !parameter.name.starts_with("fc.");
    EXPECT_EQ(speakers_of(filters, graph, parameter.node),
              is_cut ? (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}) : std::vector<int>{0})
        << parameter.name;
  }
}

}  // namespace
}  // namespace orthant::train
