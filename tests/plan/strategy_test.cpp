#include "orthant/plan/strategy.hpp"

#include "orthant/model/network.hpp"
#include "tests/plan/message.hpp"
#include "tests/tensor/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::plan {
namespace {

using Lines = std::vector<std::string>;

model::Graph network(const std::string& name, const std::string& input, std::int64_t mini_batch) {
  return model::load_network(name, {.input = input, .mini_batch = mini_batch});
}

const NodePlan& entry(const Plan& plan, const std::string& name) {
  return *std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) { return node.node == name; });
}

Plan checked_plan(const model::Graph& graph, const CompactGrid& asked) {
  Plan plan = make_plan(graph, asked);
  verify(plan, graph);
  EXPECT_EQ(from_json(to_json(plan), "plan.json"), plan);
  return plan;
}

TEST(Strategy, NamedOnesBecomeGrids) {
  const model::Graph cube = network("cosmoflow", "4x64x64x64", 4);
  const auto text = [&](const std::string& name, int ranks) { return to_text(strategy_grid(cube, name, ranks)); };
  EXPECT_EQ(text("data", 4), "n4");
  EXPECT_EQ(text("spatial", 1), "1");
  EXPECT_EQ(text("spatial", 2), "d2");
  EXPECT_EQ(text("spatial", 3), "d3");
  EXPECT_EQ(text("spatial", 4), "d2h2");
  EXPECT_EQ(text("spatial", 8), "d2h2w2");
  EXPECT_EQ(text("filter", 4), "f4");
  EXPECT_EQ(text("channel", 4), "c4");
  EXPECT_EQ(text("pipeline", 4), "p4");
  EXPECT_EQ(text("data+filter", 8), "n4f2");
  EXPECT_EQ(text("data+filter", 4), "n2f2");
  EXPECT_EQ(text("data+filter", 6), "n2f3");
  EXPECT_EQ(text("data+spatial", 8), "n4d2");
  EXPECT_EQ(text("data+spatial", 3), "d3");
  EXPECT_EQ(to_text(strategy_grid(network("alexnet", "3x224x224", 1), "spatial", 4)), "h2w2");
  EXPECT_EQ(to_text(strategy_grid(network("unet3d", "1x64x16x16", 1), "spatial", 4)), "d4");
}

TEST(Strategy, ErrorsNameWhatCanRun) {
  const model::Graph graph = network("cosmoflow", "4x32x32x32", 2);
  const auto error = [&](const std::string& name, int ranks) {
    return message_of([&] { (void)make_plan(graph, name, ranks); });
  };
  const auto grid_error = [&](const char* text) {
    return message_of([&] { (void)make_plan(graph, parse_grid(text)); });
  };
  EXPECT_EQ(error("spatail", 2), "unknown strategy 'spatail'; did you mean 'spatial'?");
  EXPECT_EQ(
      error("data", 4),
      "n4 cuts a mini-batch of 2 samples into 4 parts; the nearest that can run is --grid n2, or take a mini-batch "
      "of 4");
  EXPECT_EQ(error("pipeline", 11),
            "p11: cosmoflow can be cut into at most 10 stages; the nearest that can run is --grid p10");
  EXPECT_EQ(error("spatial", 4099),
            "spatial: no layer of cosmoflow can be cut into 4099 blocks; the nearest that can run is --grid d16h16w16");
  EXPECT_EQ(error("data", 0), "0 ranks; 1 to 1048576 are supported");
  EXPECT_NE(error("spatial", 1 << 20), "no error");
  EXPECT_EQ(
      grid_error("d32"),
      "d32 suits no layer of cosmoflow: conv1: 32 cells deep, too small for d32; the nearest that can run is --grid "
      "d16");
  EXPECT_EQ(
      grid_error("f4000"),
      "f4000 suits no layer of cosmoflow: fc1: 2048 channels, too few for 4000 parts; the nearest that can run is "
      "--grid f2048");
  EXPECT_EQ(message_of([] { (void)make_plan(network("vgg16", "3x224x224", 1), parse_grid("d2")); }),
            "d2: vgg16 is 2-D; cut height and width instead; the nearest that can run is --grid h2");
}

TEST(Strategy, OneRankIsTheSerialPlan) {
  const model::Graph graph = network("unet3d", "1x16x16x16", 2);
  for (const std::string& name : strategy_names()) EXPECT_EQ(make_plan(graph, name, 1), serial_plan(graph)) << name;
}

TEST(Strategy, TailLayersAreCutInOtherWays) {
  const model::Graph graph = network("cosmoflow", "4x128x128x128", 1);
  const CompactGrid asked = parse_grid("d4");
  const Plan plan = checked_plan(graph, asked);
  EXPECT_EQ(entry(plan, "conv4").grid, (tensor::Grid{.d = 4}));
  EXPECT_EQ(entry(plan, "conv5").grid, (tensor::Grid{.c = 4}));
  EXPECT_EQ(entry(plan, "fc1").grid, (tensor::Grid{.c = 4}));
  EXPECT_EQ(entry(plan, "fc3").grid, tensor::Grid{});
  const Lines expected{"pool4 to conv7_act: 4 cells deep, too small for d4; cut over filters (f4) instead",
                       "flatten to drop3: there is no space to cut; cut over filters (f4) instead",
                       "fc3: there is no space to cut; on 1 of 4 ranks"};
  EXPECT_EQ(remarks(plan, graph, asked), expected);
  EXPECT_EQ(remarks(plan, graph), expected);
}

TEST(Strategy, LargeImagesOfTheOutputAreCutInSpaceWhereFiltersCannotBe) {
  const model::Graph graph = network("unet3d", "1x32x32x32", 1);
  const Plan plan = checked_plan(graph, parse_grid("f4"));
  EXPECT_EQ(entry(plan, "down1.conv1").grid, (tensor::Grid{.c = 4}));
  EXPECT_EQ(entry(plan, "head").grid, (tensor::Grid{.d = 2, .h = 2}));
}

TEST(Strategy, ChannelPartsAreThoseAsked) {
  const model::Graph graph = network("alexnet", "3x224x224", 4);
  const CompactGrid asked = parse_grid("f2c2");
  const Plan plan = checked_plan(graph, asked);
  EXPECT_EQ(entry(plan, "features.0").channel_parts, 1);  // 3 channels
  EXPECT_EQ(entry(plan, "features.3").channel_parts, 2);
  EXPECT_EQ(entry(plan, "features.3").grid, (tensor::Grid{.c = 4}));
  EXPECT_EQ(entry(plan, "features.4").channel_parts, 1);
  EXPECT_EQ(entry(checked_plan(graph, parse_grid("c4")), "features.3").channel_parts, 4);
  EXPECT_EQ(remarks(plan, graph, asked).at(1),
            "features.0: 3 channels to sum over, too few for 4 parts; cut over filters (f4) instead");
}

TEST(Strategy, PipelineStagesHaveTheirRanks) {
  const model::Graph graph = network("resnet18", "3x64x64", 8);
  const Plan plan = checked_plan(graph, parse_grid("n2p2"));
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_EQ(plan.micro_batches, 4);
  for (const NodePlan& node : plan.nodes) {
    EXPECT_EQ(node.first_rank, node.stage * 2);
    EXPECT_EQ(node.grid, (tensor::Grid{.n = 2}));
  }
  EXPECT_EQ(plan.nodes.back().stage, 1);
}

/// conv -> norm -> (add ->) activation must have one grid.
void expect_fused_alike(const Plan& plan, const model::Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool rides = std::holds_alternative<model::BatchNorm>(graph.nodes[i].op) ||
                       std::holds_alternative<model::Activation>(graph.nodes[i].op);
    if (!rides) continue;
    const NodePlan& before = plan.nodes[static_cast<std::size_t>(graph.nodes[i].srcs.front())];
    EXPECT_EQ(plan.nodes[i].grid, before.grid) << graph.name << ": " << plan.nodes[i].node;
    EXPECT_EQ(plan.nodes[i].first_rank, before.first_rank) << graph.name << ": " << plan.nodes[i].node;
  }
}

TEST(Strategy, EveryPlanOfTheZooVerifies) {
  const std::vector<model::Graph> graphs{
      network("cosmoflow", "4x64x64x64", 4), network("cosmoflow-mlperf", "4x64x64x64", 3),
      network("unet3d", "1x32x32x32", 2),    network("resnet50", "3x96x96", 6),
      network("alexnet", "3x224x224", 2),    network("vgg16", "3x64x64", 1)};
  int made = 0;
  for (const model::Graph& graph : graphs) {
    for (const std::string& name : strategy_names()) {
      for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 64}) {
        CompactGrid asked;
        Plan plan;
        try {
          asked = strategy_grid(graph, name, ranks);
          plan = make_plan(graph, asked);
        } catch (const base::Error& error) {
          EXPECT_EQ(error.code(), base::Exit::does_not_fit) << error.what();
          continue;
        }
        SCOPED_TRACE(graph.name + " " + name + " " + std::to_string(ranks));
        EXPECT_EQ(plan.ranks, ranks);
        EXPECT_EQ(total_ranks(asked), ranks);
        EXPECT_EQ(message_of([&] { verify(plan, graph); }), "no error");
        EXPECT_EQ(plan.nodes.back().grid.c, 1);
        expect_fused_alike(plan, graph);
        (void)remarks(plan, graph, asked);
        ++made;
      }
    }
  }
  EXPECT_GT(made, 300);
}

TEST(Strategy, EveryGridVerifiesOrIsRefused) {
  const std::vector<model::Graph> graphs{network("cosmoflow", "4x32x32x32", 4), network("unet3d", "1x16x16x16", 3),
                                         network("resnet18", "3x64x64", 5)};
  test::Draw draw(1);
  int made = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const model::Graph& graph = graphs[static_cast<std::size_t>(draw(0, 2))];
    const auto some = [&](int most) { return draw(0, 2) == 0 ? draw.number(1, most) : 1; };
    const CompactGrid asked{
        .n = some(5), .f = some(9), .c = some(4), .d = some(8), .h = some(5), .w = some(3), .p = some(7)};
    SCOPED_TRACE(graph.name + " " + to_text(asked));
    Plan plan;
    try {
      plan = make_plan(graph, asked);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), base::Exit::does_not_fit) << error.what();
      continue;
    }
    EXPECT_EQ(message_of([&] { verify(plan, graph); }), "no error");
    EXPECT_EQ(from_json(to_json(plan), "plan.json"), plan);
    (void)remarks(plan, graph, asked);
    ++made;
  }
  EXPECT_GT(made, 1000);
}

TEST(Strategy, StagesThatCannotUseTheirRanksAreRefused) {
  EXPECT_EQ(message_of([] { (void)make_plan(network("cosmoflow", "4x32x32x32", 1), parse_grid("d8p10")); }),
            "d8p10: stage 9, from fc3 on, has work for 1 of its 8 ranks; the nearest that can run is --grid d8p9");
}

/// The grid that a refusal names.
std::string advised(const std::string& message) {
  const std::string mark = "--grid ";
  const std::size_t at = message.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  return message.substr(begin, message.find_first_not_of("0123456789ncfdhwp", begin) - begin);
}

model::Graph pooling_network() {
  model::GraphBuilder builder("poolings", 3, {.n = 2, .c = 3, .d = 8, .h = 8, .w = 8});
  builder.add("pool", model::Pool{.window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});
  return builder.finish({.terms = {{}}});
}

TEST(Strategy, AdviceCanBeFollowed) {
  const std::vector<model::Graph> graphs{network("cosmoflow", "4x16x16x16", 2), network("cosmoflow", "4x32x32x32", 1),
                                         network("unet3d", "1x16x16x16", 2),    network("resnet18", "3x32x32", 3),
                                         network("vgg16", "3x32x32", 4),        pooling_network()};
  test::Draw draw(2);
  int followed = 0;
  const auto follow = [&](const model::Graph& graph, int micro_batches, const std::string& refusal) {
    if (refusal == "no error" || refusal.find("micro-batches with") != std::string::npos) return;
    ASSERT_NE(advised(refusal), "") << refusal;
    const std::string again =
        message_of([&] { verify(make_plan(graph, parse_grid(advised(refusal)), micro_batches), graph); });
    EXPECT_EQ(again, "no error") << refusal;
    EXPECT_EQ(refusal.find(" 1 samples"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find(" 1 layers"), std::string::npos) << refusal;
    ++followed;
  };
  for (int trial = 0; trial < 400; ++trial) {
    const model::Graph& graph = graphs[static_cast<std::size_t>(draw(0, 5))];
    const int micro_batches = draw.number(0, static_cast<int>(graph.nodes.front().shape.n));
    const auto some = [&](int most) { return draw(0, 2) == 0 ? draw.number(1, most) : 1; };
    const CompactGrid asked{
        .n = some(9), .f = some(70), .c = some(9), .d = some(20), .h = some(9), .w = some(9), .p = some(13)};
    SCOPED_TRACE(graph.name + " " + to_text(asked) + ", micro-batches " + std::to_string(micro_batches));
    follow(graph, micro_batches, message_of([&] { (void)make_plan(graph, asked, micro_batches); }));
    const std::string& name = strategy_names()[static_cast<std::size_t>(draw(0, 6))];
    const int ranks = draw.number(1, 40);
    SCOPED_TRACE(name + " " + std::to_string(ranks));
    follow(graph, micro_batches, message_of([&] { (void)make_plan(graph, name, ranks, micro_batches); }));
  }
  EXPECT_GT(followed, 200);
}

/// The tail falls back to cuts that a micro-batch has samples for.
TEST(Strategy, CutsAreForMicroBatches) {
  const auto works = [](const char* name, const char* input, std::int64_t mini_batch, const char* grid) {
    const model::Graph graph = network(name, input, mini_batch);
    return message_of([&] { verify(make_plan(graph, parse_grid(grid), 2), graph); });
  };
  EXPECT_EQ(works("cosmoflow", "4x16x16x16", 2, "d2"), "no error");
  EXPECT_EQ(works("resnet18", "3x64x64", 2, "f2"), "no error");
  EXPECT_EQ(works("vgg16", "3x64x64", 2, "f2"), "no error");
  EXPECT_EQ(works("cosmoflow", "4x16x16x16", 2, "n2"),
            "n2 cuts micro-batches of 1 sample into 2 parts; the nearest that can run is --grid d2, or take a "
            "mini-batch of 4");
}

TEST(Strategy, ANetworkWithoutWeightsCanBeCut) {
  const model::Graph graph = pooling_network();
  EXPECT_EQ(entry(checked_plan(graph, parse_grid("n2")), "pool").grid, (tensor::Grid{.n = 2}));
  EXPECT_EQ(entry(checked_plan(graph, parse_grid("d2h2")), "pool").grid, (tensor::Grid{.d = 2, .h = 2}));
  EXPECT_EQ(strategy_grid(graph, "spatial", 2), (CompactGrid{.d = 2}));
}

TEST(Strategy, GroupsAreCutEvenlyOrNotAtAll) {
  model::GraphBuilder builder("depthwise", 2, {.n = 2, .c = 6, .d = 1, .h = 8, .w = 8});
  builder.add("depthwise", model::Conv{.filters = 6, .window = {.size = tensor::square(3)}, .groups = 6});
  builder.add("norm", model::BatchNorm{});
  builder.add("pointwise", model::Conv{.filters = 8});
  builder.add("out", model::Conv{.filters = 2});
  const model::Graph graph = builder.finish({.terms = {{}}});
  EXPECT_EQ(entry(checked_plan(graph, parse_grid("f3")), "norm").grid, (tensor::Grid{.c = 3}));
  const Plan plan = checked_plan(graph, parse_grid("f4"));
  EXPECT_EQ(entry(plan, "depthwise").grid.c, 1);
  EXPECT_EQ(tensor::parts(entry(plan, "depthwise").grid), 4);
  EXPECT_EQ(entry(plan, "norm").grid, entry(plan, "depthwise").grid);
  EXPECT_EQ(entry(plan, "pointwise").grid, (tensor::Grid{.c = 4}));
}

}  // namespace
}  // namespace orthant::plan
