#include "orthant/plan/share.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

using tensor::Box;
using Boxes = std::vector<Box>;

/// in -> conv -> norm -> pool -> concat(pool, pool) -> global average -> out, and their shapes:
/// 2x3x8x4x4, 2x6x8x4x4, the same, 2x6x4x2x2, 2x12x4x2x2, 2x12.
model::Graph network(const model::Op& tail) {
  model::GraphBuilder builder("net", 3, {.n = 2, .c = 3, .d = 8, .h = 4, .w = 4});
  builder.add("conv", model::Conv{.filters = 6});
  builder.add("norm", model::BatchNorm{});
  const int pool = builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  builder.add("concat", model::Concat{}, {pool, pool});
  builder.add("tail", tail);
  builder.add("out", model::Dense{.features = 2});
  return builder.finish({.terms = {{}}});
}

Plan plan_for(const model::Graph& graph, std::size_t node, const tensor::Grid& grid, int first_rank = 0) {
  Plan plan = serial_plan(graph);
  plan.ranks = first_rank + tensor::parts(grid);
  plan.nodes[node].grid = grid;
  plan.nodes[node].first_rank = first_rank;
  return plan;
}

TEST(Share, PoolsReadTheirWindows) {
  const model::Graph graph = network(model::GlobalAveragePool{});
  const Share share = share_of(plan_for(graph, 3, {.c = 2, .d = 3}), graph, 3, 4);
  EXPECT_EQ(share.owned, (Box{.lo = {0, 3, 2, 0, 0}, .hi = {2, 6, 3, 2, 2}}));
  EXPECT_EQ(share.computed, share.owned);
  EXPECT_EQ(share.sources, (std::vector<Boxes>{{{.lo = {0, 3, 4, 0, 0}, .hi = {2, 6, 6, 4, 4}}}}));
}

TEST(Share, CellwiseOpsReadWhatTheyOwn) {
  const model::Graph graph = network(model::GlobalAveragePool{});
  const Plan plan = plan_for(graph, 2, {.n = 2, .h = 2}, 3);
  EXPECT_EQ(share_of(plan, graph, 2, 4).sources,
            (std::vector<Boxes>{{{.lo = {0, 0, 0, 2, 0}, .hi = {1, 6, 8, 4, 4}}}}));
  const Share idle = share_of(plan, graph, 2, 1);
  EXPECT_EQ(idle.owned, Box{});
  EXPECT_EQ(idle.sources, std::vector<Boxes>{{}});
}

TEST(Share, ConcatReadsEachSourcesPartOfTheChannels) {
  const model::Graph graph = network(model::GlobalAveragePool{});
  const Plan plan = plan_for(graph, 4, {.c = 3});
  const auto channels = [](std::int64_t lo, std::int64_t hi) {
    return Boxes{{.lo = {0, lo, 0, 0, 0}, .hi = {2, hi, 4, 2, 2}}};
  };
  EXPECT_EQ(share_of(plan, graph, 4, 0).sources, (std::vector<Boxes>{channels(0, 4), {}}));
  EXPECT_EQ(share_of(plan, graph, 4, 1).sources, (std::vector<Boxes>{channels(4, 6), channels(0, 2)}));
  EXPECT_EQ(share_of(plan, graph, 4, 2).sources, (std::vector<Boxes>{{}, channels(2, 6)}));
}

TEST(Share, GlobalAverageReadsAllCellsOfItsChannels) {
  const model::Graph graph = network(model::GlobalAveragePool{});
  const Share share = share_of(plan_for(graph, 5, {.n = 2, .c = 5}), graph, 5, 6);
  EXPECT_EQ(share.owned, (Box{.lo = {1, 3, 0, 0, 0}, .hi = {2, 6, 1, 1, 1}}));
  EXPECT_EQ(share.sources, (std::vector<Boxes>{{{.lo = {1, 3, 0, 0, 0}, .hi = {2, 6, 4, 2, 2}}}}));
}

TEST(Share, FlattenIsCutBetweenChannels) {
  const model::Graph graph = network(model::Flatten{});  // 12 channels of 16 cells
  const Plan plan = plan_for(graph, 5, {.c = 5});
  std::int64_t channel = 0;
  for (int rank = 0; rank < 5; ++rank) {
    const Share share = share_of(plan, graph, 5, rank);
    const std::int64_t end = channel + (rank < 2 ? 3 : 2);
    EXPECT_EQ(share.owned, (Box{.lo = {0, channel * 16, 0, 0, 0}, .hi = {2, end * 16, 1, 1, 1}}));
    EXPECT_EQ(share.sources, (std::vector<Boxes>{{{.lo = {0, channel, 0, 0, 0}, .hi = {2, end, 4, 2, 2}}}}));
    channel = end;
  }
}

TEST(Share, LossSeesAllChannelsOfAPixel) {
  const model::Graph graph = network(model::Flatten{});
  const Plan plan = plan_for(graph, 6, {.c = 2}, 1);
  const tensor::Distribution loss = loss_distribution(plan, graph);
  EXPECT_EQ(loss.grid, (tensor::Grid{.n = 2}));
  EXPECT_EQ(loss.first_rank, 1);
  EXPECT_EQ(tensor::owned_box(loss, 2), (Box{.lo = {1, 0, 0, 0, 0}, .hi = {2, 2, 1, 1, 1}}));
}

TEST(StatisticsGroup, CoversTheRanksItSays) {
  const model::Graph graph = network(model::Flatten{});
  Plan plan = plan_for(graph, 2, {.n = 2, .c = 2, .d = 3}, 1);  // 12 parts from rank 1 on
  const auto group = [&](Statistics statistics, int rank) {
    plan.nodes[2].statistics = statistics;
    return statistics_group(plan, graph, 2, rank);
  };
  EXPECT_EQ(group(Statistics::local, 2).ranks.to_list(), std::vector<int>{2});
  EXPECT_EQ(group(Statistics::local, 2).pixels, 3 * 16);
  EXPECT_EQ(group(Statistics::spatial, 2).ranks.to_list(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(group(Statistics::spatial, 2).pixels, 8 * 16);
  EXPECT_EQ(group(Statistics::global, 2).ranks.to_list(), (std::vector<int>{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(group(Statistics::global, 12).ranks.to_list(), (std::vector<int>{4, 5, 6, 10, 11, 12}));
  EXPECT_EQ(group(Statistics::global, 12).pixels, 2 * 8 * 16);
  EXPECT_TRUE(group(Statistics::global, 0).ranks.empty());
}

}  // namespace
}  // namespace orthant::plan
