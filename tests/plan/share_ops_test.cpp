#include "orthant/plan/share.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

using tensor::Box;
using tensor::Range;
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

/// Ranks add up their own cells of the source, whoever owns the means.
TEST(Share, GlobalAverageReadsCellsWhereTheyLie) {
  const model::Graph graph = network(model::GlobalAveragePool{});
  Plan plan = plan_for(graph, 5, {.n = 2, .c = 5});
  plan.nodes[4].grid = {.c = 3, .d = 2};
  const Share share = share_of(plan, graph, 5, 5);  // channels 8 to 12, cells 2 and 3 deep
  EXPECT_EQ(share.owned, (Box{.lo = {1, 0, 0, 0, 0}, .hi = {2, 3, 1, 1, 1}}));
  EXPECT_EQ(share.computed, (Box{.lo = {0, 8, 0, 0, 0}, .hi = {2, 12, 1, 1, 1}}));
  EXPECT_EQ(share.sources, (std::vector<Boxes>{{{.lo = {0, 8, 2, 0, 0}, .hi = {2, 12, 4, 2, 2}}}}));
  const Share idle = share_of(plan, graph, 5, 9);
  EXPECT_EQ(idle.computed, Box{});
  EXPECT_EQ(idle.sources, std::vector<Boxes>{{}});
}

/// input -> op, of 2 x 6 x 8 x 4 x 4.
model::Graph one_op(const model::Op& op) {
  model::GraphBuilder builder("net", 3, {.n = 2, .c = 6, .d = 8, .h = 4, .w = 4});
  builder.add("op", op);
  return builder.finish({.terms = {{}}});
}

Range depth_read(const model::Op& op, int parts, int part) {
  const model::Graph graph = one_op(op);
  const Share share = share_of(plan_for(graph, 1, {.d = parts}), graph, 1, part);
  return share.sources.at(0).empty() ? Range{} : share.sources[0].front()[tensor::Dim::d];
}

TEST(Share, ResizesReadTheCellsBetweenWhichTheirsLie) {
  const model::Resize nearest{.factor = {2, 1, 1}};
  EXPECT_EQ(depth_read(nearest, 2, 0), (Range{0, 4}));
  EXPECT_EQ(depth_read(nearest, 2, 1), (Range{4, 8}));
  const model::Resize linear{.mode = model::ResizeMode::linear, .factor = {2, 1, 1}};
  EXPECT_EQ(depth_read(linear, 2, 0), (Range{0, 5}));
  EXPECT_EQ(depth_read(linear, 2, 1), (Range{3, 8}));
  const model::Resize corners{.mode = model::ResizeMode::linear, .align_corners = true, .size = {15, 4, 4}};
  EXPECT_EQ(depth_read(corners, 3, 0), (Range{0, 3}));
  EXPECT_EQ(depth_read(corners, 3, 1), (Range{2, 6}));  // between 2.5 and 4.5
  EXPECT_EQ(depth_read(corners, 3, 2), (Range{5, 8}));
}

TEST(Share, SlicesAndPadsReadShiftedCells) {
  const model::Slice slice{.first_channel = 2, .first = {1, 0, 0}, .step = {2, 1, 1}};  // 1, 3, 5, 7
  EXPECT_EQ(depth_read(slice, 2, 0), (Range{1, 4}));
  EXPECT_EQ(depth_read(slice, 2, 1), (Range{5, 8}));
  const model::Graph graph = one_op(slice);
  EXPECT_EQ(share_of(plan_for(graph, 1, {.c = 2}), graph, 1, 1).sources,
            (std::vector<Boxes>{{{.lo = {0, 4, 1, 0, 0}, .hi = {2, 6, 8, 4, 4}}}}));
  const model::Pad zeros{.lo = {2, 0, 0}, .hi = {2, 0, 0}};
  EXPECT_EQ(depth_read(zeros, 2, 0), (Range{0, 4}));
  EXPECT_EQ(depth_read(zeros, 3, 2), (Range{6, 8}));
  const model::Pad mirror{.mode = model::PadMode::reflect, .lo = {3, 0, 0}, .hi = {3, 0, 0}};
  EXPECT_EQ(depth_read(mirror, 7, 0), (Range{0, 4}));  // cells 3 and 2; both ends rise from part to part
  EXPECT_EQ(depth_read(mirror, 7, 6), (Range{4, 8}));  // cells 5 and 4
}

TEST(Share, ChannelShufflesReadSomeOfEveryGroup) {
  const model::Graph graph = one_op(model::ChannelShuffle{.groups = 2});  // 0 3 1 4 2 5
  const auto channels = [&](int part) {
    std::vector<Range> ranges;
    const Share share = share_of(plan_for(graph, 1, {.c = 3}), graph, 1, part);
    for (const Box& box : share.sources.at(0)) ranges.push_back(box[tensor::Dim::c]);
    return ranges;
  };
  EXPECT_EQ(channels(0), (std::vector<Range>{{0, 1}, {3, 4}}));
  EXPECT_EQ(channels(2), (std::vector<Range>{{2, 3}, {5, 6}}));
  EXPECT_EQ(share_of(serial_plan(graph), graph, 1, 0).sources,
            (std::vector<Boxes>{{{.lo = {0, 0, 0, 0, 0}, .hi = {2, 6, 8, 4, 4}}}}));
}

TEST(Share, PixelShufflesReadWholeBlocks) {
  const model::PixelShuffle up{.factor = {3, 1, 2}};  // 24 deep, one channel
  EXPECT_EQ(depth_read(up, 5, 0), (Range{0, 2}));     // cells 0 to 4
  EXPECT_EQ(depth_read(up, 5, 1), (Range{1, 4}));     // 5 to 9
  const model::PixelShuffle down{.factor = {2, 1, 1}, .to_channels = true};
  EXPECT_EQ(depth_read(down, 3, 1), (Range{4, 6}));  // of 4 cells the third
  const model::Graph graph = one_op(down);           // 12 channels
  EXPECT_EQ(share_of(plan_for(graph, 1, {.c = 5}), graph, 1, 1).sources,
            (std::vector<Boxes>{{{.lo = {0, 1, 0, 0, 0}, .hi = {2, 3, 8, 4, 4}}}}));  // channels 3 to 5
}

TEST(Share, ProductsReadTheOneCellOrChannel) {
  model::GraphBuilder builder("net", 3, {.n = 2, .c = 6, .d = 8, .h = 4, .w = 4});
  const int gate = builder.add("gate", model::GlobalAveragePool{}, {0});
  const int pixel = builder.add("pixel", model::Conv{.filters = 1}, {0});
  const int first = builder.add("first", model::Multiply{}, {0, gate});
  builder.add("second", model::Multiply{}, {first, pixel});
  const model::Graph graph = builder.finish({.terms = {{}}});
  const tensor::Grid grid{.c = 3, .d = 2};
  EXPECT_EQ(share_of(plan_for(graph, 3, grid), graph, 3, 5).sources,
            (std::vector<Boxes>{{{.lo = {0, 4, 4, 0, 0}, .hi = {2, 6, 8, 4, 4}}},
                                {{.lo = {0, 4, 0, 0, 0}, .hi = {2, 6, 1, 1, 1}}}}));
  EXPECT_EQ(share_of(plan_for(graph, 4, grid), graph, 4, 5).sources,
            (std::vector<Boxes>{{{.lo = {0, 4, 4, 0, 0}, .hi = {2, 6, 8, 4, 4}}},
                                {{.lo = {0, 0, 4, 0, 0}, .hi = {2, 1, 8, 4, 4}}}}));
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
  EXPECT_EQ(group(Statistics::local, 2).items, 3 * 16);
  EXPECT_EQ(group(Statistics::spatial, 2).ranks.to_list(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(group(Statistics::spatial, 2).items, 8 * 16);
  EXPECT_EQ(group(Statistics::global, 2).ranks.to_list(), (std::vector<int>{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(group(Statistics::global, 12).ranks.to_list(), (std::vector<int>{4, 5, 6, 10, 11, 12}));
  EXPECT_EQ(group(Statistics::global, 12).items, 2 * 8 * 16);
  EXPECT_TRUE(group(Statistics::global, 0).ranks.empty());
}

/// Those with the same samples; where a cut goes through a group of channels, those with other channels, too.
TEST(StatisticsGroup, OfSamplesCoversTheirRanks) {
  const auto group = [&](std::int64_t groups, int rank) {
    const model::Graph graph = one_op(model::SampleNorm{.groups = groups});
    return statistics_group(plan_for(graph, 1, {.n = 2, .c = 2, .d = 3}, 1), graph, 1, rank);
  };
  EXPECT_EQ(group(2, 2).ranks.to_list(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(group(2, 2).groups, (model::SampleGroups{.groups = 1, .channels = 3}));
  EXPECT_EQ(group(2, 2).items, 3 * 8 * 16);
  EXPECT_EQ(group(6, 12).groups, (model::SampleGroups{.groups = 3, .channels = 1}));
  EXPECT_EQ(group(1, 12).ranks.to_list(), (std::vector<int>{7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(group(1, 12).groups, (model::SampleGroups{.groups = 1, .channels = 6, .first = 3}));
  EXPECT_EQ(group(1, 12).statistics, 1);
  EXPECT_TRUE(group(1, 0).ranks.empty());
}

}  // namespace
}  // namespace orthant::plan
