#include "orthant/plan/plan.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

model::Graph small_network() {
  model::GraphBuilder builder("small", 3, {.n = 2, .c = 3, .d = 4, .h = 5, .w = 6});
  builder.add("conv", model::Conv{.filters = 7});
  builder.add("act", model::Activation{.kind = model::ActivationKind::relu});
  return builder.finish({.terms = {{}}});
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, SerialPlanFitsItsGraph) {
  const model::Graph graph = small_network();
  const Plan plan = serial_plan(graph);

  EXPECT_NO_THROW(verify(plan, graph));
  EXPECT_EQ(distribution(plan, graph, 1).global, (tensor::Shape{2, 7, 4, 5, 6}));
}

TEST(Plan, JsonRoundTrips) {
  Plan plan = serial_plan(small_network());
  plan.ranks = 4;
  for (NodePlan& node : plan.nodes) node.grid = {.n = 2, .d = 2};

  EXPECT_EQ(from_json(to_json(plan), "plan.json"), plan);
}

TEST(Plan, VerifyNamesWhatDoesNotFit) {
  const model::Graph graph = small_network();
  Plan plan = serial_plan(graph);

  plan.nodes[1].grid.d = 2;
  EXPECT_EQ(message_of([&] { verify(plan, graph); }),
            "conv: grid d2 has 2 parts but the plan is for 1 ranks; let the grid's product be 1");
  plan = serial_plan(graph);
  plan.nodes[2].node = "relu";
  EXPECT_NE(message_of([&] { verify(plan, graph); }).find("'relu'"), std::string::npos);
  plan.nodes.pop_back();
  EXPECT_NE(message_of([&] { verify(plan, graph); }).find("2 nodes"), std::string::npos);
}

TEST(Plan, BadJsonIsRefusedWithItsOrigin) {
  for (const char* text : {"", "[]", "{}", "{\"format\": \"orthant-plan\"}",
                           "{\"format\": \"orthant-plan\", \"version\": 9, \"ranks\": 1, \"nodes\": []}",
                           "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 0, \"nodes\": []}",
                           "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": [1]}",
                           "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": "
                           "[{\"node\": \"a\", \"grid\": {\"q\": 2}}]}",
                           "{\"format\": \"orthant-plan\", \"version\": 1, \"ranks\": 1, \"nodes\": "
                           "[{\"node\": \"a\", \"grid\": {\"d\": 1e300}}]}"}) {
    EXPECT_EQ(message_of([&] { (void)from_json(text, "plan.json"); }).rfind("plan.json", 0), 0U) << text;
  }
}

}  // namespace
}  // namespace orthant::plan
