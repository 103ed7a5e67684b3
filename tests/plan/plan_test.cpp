#include "orthant/plan/plan.hpp"

#include "orthant/base/format.hpp"
#include "tests/plan/message.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

model::Graph small_network() {
  model::GraphBuilder builder("small", 3, {.n = 2, .c = 3, .d = 4, .h = 5, .w = 6});
  builder.add("conv", model::Conv{.filters = 7});
  builder.add("act", model::Activation{.kind = model::ActivationKind::relu});
  return builder.finish({.terms = {{}}});
}

TEST(Plan, SerialPlanFitsItsGraph) {
  const model::Graph graph = small_network();
  const Plan plan = serial_plan(graph);

  EXPECT_NO_THROW(verify(plan, graph));
  EXPECT_EQ(distribution(plan, graph, 1).global, (tensor::Shape{2, 7, 4, 5, 6}));
}

Plan full_plan() {
  Plan plan = serial_plan(small_network());
  plan.ranks = 8;
  plan.micro_batches = 2;
  plan.error = model::ErrorClass::fast;
  plan.nodes[0].grid = {.n = 2, .d = 2};
  plan.nodes[1].grid = {.c = 4};
  plan.nodes[1].channel_parts = 2;
  plan.nodes[2] = {
      .node = "act",
      .grid = {.c = 2, .h = 2},
      .first_rank = 4,
      .channel_parts = 2,
      .stage = 1,
      .statistics = Statistics::spatial,
      .kernels = {.forward = {model::Algorithm::winograd, 0.1, 4096},
                  .backward_data = {.algorithm = model::Algorithm::matrix,
                                    .pieces = {{model::Algorithm::matrix, 8, 4}, {model::Algorithm::onednn, 3}}},
                  .backward_weights = {.algorithm = model::Algorithm::direct}}};
  return plan;
}

TEST(Plan, JsonRoundTrips) {
  const Plan plan = full_plan();
  EXPECT_EQ(from_json(to_json(plan), "plan.json"), plan);
}

TEST(Plan, JsonLeavesOutWhatIsDefault) {
  const std::string text = to_json(serial_plan(small_network()));
  for (const char* key :
       {"first_rank", "algorithm", "channel_parts", "stage", "statistics", "kernels", "micro_batches"}) {
    EXPECT_EQ(text.find(key), std::string::npos) << key;
  }
  EXPECT_NE(to_json(full_plan()).find("\"stationary-w\""), std::string::npos);
  EXPECT_NE(to_json(full_plan()).find("\"stationary-x\""), std::string::npos);
}

TEST(Plan, TableJoinsNodesThatAreCutAlike) {
  EXPECT_EQ(to_text(serial_plan(small_network())),
            "1 rank\n"
            "nodes         grid  ranks\n"
            "input to act  1     0\n");
  EXPECT_EQ(to_text(full_plan()),
            "8 ranks, 2 micro-batches\n"
            "nodes  grid  ranks  stage  algorithm                      statistics\n"
            "input  n2d2  0-3    0\n"
            "conv   c4    0-3    0      stationary-w, 2 channel parts\n"
            "act    c2h2  4-7    1      stationary-x                   spatial statistics\n");
}

TEST(Plan, BadNodesAreRefusedWithTheirPlace) {
  const auto error = [](const std::string& fields) {
    const std::string text =
        R"({"format": "orthant-plan", "version": 1, "ranks": 4, "nodes": [{"node": "conv", )" + fields + "}]}";
    return message_of([&] { (void)from_json(text, "plan.json"); });
  };
  EXPECT_EQ(error(R"("grid": {"c": 4}, "algorithm": "stationary-x")"), "no error");
  EXPECT_EQ(error(R"("grid": {"c": 4}, "algorithm": "stationary-z")"),
            "plan.json: conv: 'algorithm' is \"stationary-z\"; did you mean 'stationary-x'?");
  EXPECT_EQ(error(R"("grid": {"c": 4}, "algorithm": "stationary-w")"),
            "plan.json: conv: 'channel_parts' goes with \"algorithm\": \"stationary-w\", and only with that");
  EXPECT_EQ(error(R"("grid": {"c": 4}, "channel_parts": 2)"),
            "plan.json: conv: 'channel_parts' goes with \"algorithm\": \"stationary-w\", and only with that");
  EXPECT_EQ(error(R"("grid": {"c": 4}, "algorithm": "stationary-w", "channel_parts": 3)"),
            "plan.json: conv: 'channel_parts' is 3; it must divide the grid's c, which is 4");
  EXPECT_EQ(error(R"("statistics": "globl")"), "plan.json: conv: 'statistics' is \"globl\"; did you mean 'global'?");
  EXPECT_EQ(error(R"("kernel": "winogard")"), "plan.json: conv: 'kernel' is \"winogard\"; did you mean 'winograd'?");
  EXPECT_EQ(error(R"("statistics": 3)"), "plan.json: conv: 'statistics' is 3; known are: local, spatial, global");
  EXPECT_EQ(error(R"("first_rank": -1)"),
            "plan.json: conv: 'first_rank' is -1; it must be a whole number from 0 to 1048576");
  EXPECT_EQ(error(R"("stage": 0.5)"), "plan.json: conv: 'stage' is 0.5; it must be a whole number from 0 to 1048576");
  EXPECT_EQ(error(R"("grids": {})"), "plan.json: conv: unknown key 'grids'; did you mean 'grid'?");
  EXPECT_EQ(error(R"("grid": {"d": 0})"), "plan.json: conv: 'd' is 0; it must be a whole number from 1 to 1048576");
}

/// A plan of one node with these fields.
std::string one_node(const std::string& fields) {
  return R"({"format": "orthant-plan", "version": 1, "ranks": 4, "nodes": [{"node": "conv", )" + fields + "}]}";
}

TEST(Plan, AKernelOfOldFilesIsThatOfAllPasses) {
  const KernelChoice winograd{.algorithm = model::Algorithm::winograd};
  const KernelChoice direct{.algorithm = model::Algorithm::direct, .seconds = 0.25, .scratch_bytes = 64};
  KernelChoices expected{.forward = winograd, .backward_data = winograd, .backward_weights = winograd};
  EXPECT_EQ(from_json(one_node(R"("kernel": "winograd")"), "plan.json").nodes.front().kernels, expected);

  expected.backward_data = direct;
  const char* both = R"("kernel": "winograd", "kernels": {"backward_data":
                        {"algorithm": "direct", "seconds": 0.25, "scratch_bytes": 64}})";
  EXPECT_EQ(from_json(one_node(both), "plan.json").nodes.front().kernels, expected);
}

TEST(Plan, BadKernelsAreRefusedWithTheirPlace) {
  const auto error = [](const std::string& kernels) {
    return message_of([&] { (void)from_json(one_node("\"kernels\": " + kernels), "plan.json"); });
  };
  EXPECT_EQ(error(R"({"forward": {"pieces": [{"algorithm": "direct", "samples": 2, "slabs": 3}]}})"), "no error");
  EXPECT_EQ(error(R"({"forward": {"pieces": []}})"),
            "plan.json: conv: kernels: forward: pieces: must be a list with at least one piece");
  EXPECT_EQ(error(R"({"forward": {"pieces": [{"algorithm": "direct", "samples": 0}]}})"),
            "plan.json: conv: kernels: forward: pieces 1: 'samples' is 0; it must be a whole number from 1 to "
            "1099511627776");
  EXPECT_EQ(error(R"({"forward": {"pieces": [{"samples": 1}]}})"),
            "plan.json: conv: kernels: forward: pieces 1: 'algorithm' is missing");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "direct", "pieces": [{"algorithm": "direct", "samples": 1}]}})"),
            "plan.json: conv: kernels: forward: pieces: every piece has an algorithm of its own; leave out the one "
            "beside them");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "direct", "seconds": 1, "scratch_bytes": 0}})"), "no error");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "direct", "prepare_weights": true}})"), "no error");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "direct", "prepare_weights": 1}})"),
            "plan.json: conv: kernels: forward: 'prepare_weights' is 1; it must be true or false");
  EXPECT_EQ(error(R"("direct")"), "plan.json: conv: kernels: must be an object with a choice per pass");
  EXPECT_EQ(error(R"({"forwards": {}})"), "plan.json: conv: kernels: unknown key 'forwards'; did you mean 'forward'?");
  EXPECT_EQ(error(R"({"forward": "direct"})"),
            "plan.json: conv: kernels: forward: must be an object such as {\"algorithm\": \"direct\"}");
  EXPECT_EQ(error(R"({"forward": {}})"), "plan.json: conv: kernels: forward: 'algorithm' is missing");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "winogard"}})"),
            "plan.json: conv: kernels: forward: 'algorithm' is \"winogard\"; did you mean 'winograd'?");
  EXPECT_EQ(error(R"({"forward": {"algorithm": "direct", "second": 1}})"),
            "plan.json: conv: kernels: forward: unknown key 'second'; did you mean 'seconds'?");
  for (const char* seconds : {"-1", "-1e-300", "\"1\"", "null", "true", "[1]"}) {
    EXPECT_EQ(
        error(std::string(R"({"forward": {"algorithm": "direct", "seconds": )") + seconds + "}}"),
        fmt::format("plan.json: conv: kernels: forward: 'seconds' is {}; it must be a number from 0 to 1000000000",
                    seconds));
  }
  EXPECT_NE(error(R"({"forward": {"algorithm": "direct", "seconds": NaN}})"), "no error");
  EXPECT_NE(error(R"({"forward": {"algorithm": "direct", "seconds": 1e999}})"), "no error");
  for (const char* bytes : {"-1", "0.5", "1e+30", "18446744073709551615", "\"1\""}) {
    EXPECT_EQ(
        error(std::string(R"({"forward": {"algorithm": "direct", "scratch_bytes": )") + bytes + "}}"),
        fmt::format("plan.json: conv: kernels: forward: 'scratch_bytes' is {}; it must be a whole number from 0 to "
                    "1152921504606846976",
                    bytes));
  }
}

TEST(Plan, BadJsonIsRefusedWithItsOrigin) {
  for (const char* text :
       {"", "[]", "{}", "{\"format\": \"orthant-plan\"}",
        "{\"format\": \"orthant-plan\", \"version\": 9, \"ranks\": 1, \"nodes\": []}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 0, \"nodes\": []}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": [1]}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"rank\": 1, \"nodes\": []}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"micro_batches\": 0, \"nodes\": []}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": "
        "[{\"node\": \"a\", \"grid\": {\"q\": 2}}]}",
        "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": "
        "[{\"node\": \"a\", \"grid\": {\"d\": 1e300}}]}"}) {
    EXPECT_EQ(message_of([&] { (void)from_json(text, "plan.json"); }).rfind("plan.json", 0), 0U) << text;
  }
}

}  // namespace
}  // namespace orthant::plan
