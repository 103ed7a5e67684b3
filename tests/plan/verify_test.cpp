#include "orthant/plan/plan.hpp"
#include "tests/plan/message.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

model::Graph small_network() {
  model::GraphBuilder builder("small", 3, {.n = 4, .c = 3, .d = 4, .h = 5, .w = 6});
  builder.add("conv", model::Conv{.filters = 8});
  builder.add("act", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("grouped", model::Conv{.filters = 8, .groups = 4});
  builder.add("softmax", model::Softmax{});
  return builder.finish({.terms = {{}}});
}

/// A plan for so many ranks with one grid for all nodes.
Plan uniform(const model::Graph& graph, const tensor::Grid& grid) {
  Plan plan = serial_plan(graph);
  plan.ranks = tensor::parts(grid);
  for (NodePlan& node : plan.nodes) node.grid = grid;
  return plan;
}

class Verify : public testing::Test {
 protected:
  std::string error() const {
    return message_of([this] { verify(plan, graph); });
  }
  NodePlan& node(std::size_t i) { return plan.nodes.at(i); }

  model::Graph graph = small_network();
  Plan plan = uniform(graph, {.n = 2, .d = 2});
};

TEST_F(Verify, AcceptsWhatCanRun) {
  EXPECT_EQ(error(), "no error");
  node(1).grid = {.c = 4};
  node(1).channel_parts = 2;
  node(3).grid = {.w = 2};
  node(3).first_rank = 2;
  EXPECT_EQ(error(), "no error");
}

TEST_F(Verify, NamesMustBeThoseOfTheNetwork) {
  node(2).node = "relu";
  EXPECT_EQ(error(), "the plan's node 2 is 'relu' but small has 'act' there; make the plan for this network");
  plan.nodes.pop_back();
  EXPECT_EQ(error(), "the plan has 4 nodes but small has 5; make the plan for this network");
}

TEST_F(Verify, PartsMustBeWithinTheRanks) {
  node(1).grid = {.d = 4, .w = 2};
  EXPECT_EQ(error(),
            "conv: grid d4w2 from rank 0 on needs 8 ranks but the plan is for 4 ranks; let the grid have at most 4 "
            "parts");
  node(1).grid = {.d = 2};
  node(1).first_rank = 3;
  EXPECT_EQ(error(),
            "conv: grid d2 from rank 3 on needs 5 ranks but the plan is for 4 ranks; let the grid have at most 1 part");
  node(1).first_rank = -1;
  EXPECT_EQ(error(), "conv: first_rank is -1; ranks count from 0");
  node(1).grid = {.n = 1 << 20, .c = 1 << 20, .d = 1 << 20, .h = 1 << 20};
  EXPECT_EQ(error(), "conv: the grid's parts must be at least 1, and at most 1048576 together");
  node(1).grid = {.d = 0};
  EXPECT_EQ(error(), "conv: the grid's parts must be at least 1, and at most 1048576 together");
  plan.ranks = 0;
  EXPECT_EQ(error(), "the plan is for 0 ranks; at least 1 is needed");
}

TEST_F(Verify, EveryRankHasWork) {
  plan.ranks = 6;
  EXPECT_EQ(error(), "rank 4 of the plan has nothing to do in any layer; use 4 ranks or cut some layer further");
}

TEST_F(Verify, ChannelPartsSuitTheOp) {
  node(1).grid = {.c = 4};
  node(1).channel_parts = 3;
  EXPECT_EQ(error(), "conv: 3 channel parts do not divide c4; use e.g. 2");
  node(1).channel_parts = 0;
  EXPECT_EQ(error(), "conv: 0 channel parts do not divide c4; use e.g. 1");
  node(1).channel_parts = 4;
  EXPECT_EQ(error(), "conv: 4 channel parts of 3 src channels leave some of them without any; use at most 3");
  node(1).channel_parts = 1;
  node(2).grid = {.c = 4};
  node(2).channel_parts = 2;
  EXPECT_EQ(error(), "act: channel parts are for convolutions and dense layers, this is a relu; leave them out");
  node(2).channel_parts = 1;
  node(3).grid = {.c = 4};
  node(3).channel_parts = 4;
  EXPECT_EQ(error(), "grouped: a convolution with 4 groups cannot cut its sums over channels; use stationary-y");
  node(3).channel_parts = 1;
  node(4).grid = {.c = 4};
  EXPECT_EQ(error(), "softmax: c4 cuts the channels of a softmax, which needs them all; cut n, d, h or w there");
}

TEST_F(Verify, PartsHaveCells) {
  plan = uniform(graph, {.d = 8});
  EXPECT_EQ(error(), "input: d8 cuts 4 cells into 8 parts; at most d4 works here");
  plan = uniform(graph, {.n = 8});
  EXPECT_EQ(error(), "input: n8 cuts 4 samples into 8 parts; at most n4 works here");
  plan = uniform(graph, {.n = 2, .d = 2});
  node(0).grid = {.c = 4};
  EXPECT_EQ(error(), "input: c4 cuts 3 channels into 4 parts; at most c3 works here");
  plan = uniform(graph, {.n = 4});
  plan.micro_batches = 2;
  EXPECT_EQ(error(), "input: n4 cuts 2 samples into 4 parts; at most n2 works here");
}

TEST_F(Verify, GroupsMayLeaveRanksEmpty) {
  plan = uniform(graph, {.n = 1, .h = 5});
  node(3).grid = {.c = 5};
  EXPECT_EQ(error(), "no error");
}

TEST_F(Verify, StagesRise) {
  node(1).stage = 1;
  EXPECT_EQ(error(), "act: stage 0 reads conv of the later stage 1; let its stage be at least 1");
  node(1).stage = -1;
  EXPECT_EQ(error(), "conv: stage is -1; stages count from 0");
}

TEST_F(Verify, MicroBatchesHaveSamples) {
  plan.micro_batches = 5;
  EXPECT_EQ(error(), "5 micro-batches of a mini-batch of 4; use 1 to 4");
  plan.micro_batches = 0;
  EXPECT_EQ(error(), "0 micro-batches of a mini-batch of 4; use 1 to 4");
  plan.micro_batches = 2;
  EXPECT_EQ(error(), "no error");
  graph.loss.terms = {{.kind = model::LossKind::cross_entropy}, {.kind = model::LossKind::soft_dice}};
  EXPECT_EQ(error(), "2 micro-batches with a soft_dice loss, whose sums run over the mini-batch; use 1 micro-batch");
}

TEST(VerifyPadding, BlocksThatSeeOnlyPaddingAreRefused) {
  model::GraphBuilder builder("padded", 3, {.n = 1, .c = 1, .d = 1, .h = 1, .w = 2});
  builder.add("conv", model::Conv{.window = {.size = {1, 1, 3}, .pad_lo = {0, 0, 4}, .pad_hi = {0, 0, 4}}});
  const model::Graph graph = builder.finish({.terms = {{}}});  // 8 cells, the first and last two of which see padding
  const auto error = [&](int parts) {
    Plan plan = uniform(graph, {.w = parts});
    plan.nodes.front().grid = {};
    return message_of([&] { verify(plan, graph); });
  };
  EXPECT_EQ(error(2), "no error");
  EXPECT_EQ(error(4), "conv: part 0 of w4 would see only padding; at most w2 works here");
}

}  // namespace
}  // namespace orthant::plan
