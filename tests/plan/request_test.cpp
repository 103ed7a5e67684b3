#include "orthant/plan/request.hpp"

#include "orthant/plan/strategy.hpp"
#include "tests/plan/message.hpp"

#include <gtest/gtest.h>

namespace orthant::plan {
namespace {

model::Graph network(std::int64_t samples) {
  model::GraphBuilder builder("small", 3, {.n = samples, .c = 3, .d = 8, .h = 8, .w = 8});
  builder.add("conv", model::Conv{.filters = 8});
  builder.add("norm", model::BatchNorm{});
  return builder.finish({.terms = {{}}});
}

TEST(PlanRequest, NamesItsRanksOrNone) {
  EXPECT_EQ(ranks_of({}), 0);
  EXPECT_EQ(ranks_of({.strategy = "data"}), 0);
  EXPECT_EQ(ranks_of({.grid = "n2d2"}), 4);
  EXPECT_EQ(ranks_of({.plan = make_plan(network(2), "data", 2)}), 2);
}

TEST(PlanRequest, CutsAsAsked) {
  const model::Graph graph = network(4);
  EXPECT_EQ(make_plan(graph, PlanRequest{.grid = "d2"}, 2), make_plan(graph, parse_grid("d2")));
  EXPECT_EQ(make_plan(graph, PlanRequest{.strategy = "filter"}, 2), make_plan(graph, "filter", 2));
  const Plan plan = make_plan(graph, "spatial", 2);
  EXPECT_EQ(make_plan(graph, PlanRequest{.plan = plan}, 2), plan);
}

TEST(PlanRequest, CutsSamplesWhileThereAreEnough) {
  EXPECT_EQ(make_plan(network(4), PlanRequest{}, 1), serial_plan(network(4)));
  EXPECT_EQ(make_plan(network(4), PlanRequest{}, 4), make_plan(network(4), "data", 4));
  EXPECT_EQ(make_plan(network(2), PlanRequest{}, 4), make_plan(network(2), "data+spatial", 4));
}

TEST(PlanRequest, MicroBatchesAndStatisticsReplaceThoseOfThePlan) {
  const model::Graph graph = network(4);
  const Plan plan =
      make_plan(graph, PlanRequest{.plan = serial_plan(graph), .micro_batches = 2, .statistics = Statistics::local}, 1);
  EXPECT_EQ(plan.micro_batches, 2);
  for (const NodePlan& node : plan.nodes) EXPECT_EQ(node.statistics, Statistics::local);
}

TEST(PlanRequest, RefusesAnotherNumberOfRanks) {
  const model::Graph graph = network(4);
  EXPECT_EQ(message_of([&] { make_plan(graph, PlanRequest{.grid = "d2"}, 3); }),
            "the grid d2 is for 2 ranks, but there are 3; use --ranks 2");
  EXPECT_EQ(message_of([&] { make_plan(graph, PlanRequest{.plan = serial_plan(graph), .plan_path = "a.json"}, 2); }),
            "the plan 'a.json' is for 1 rank, but there are 2; use --ranks 1");
  EXPECT_NE(message_of([&] { make_plan(graph, PlanRequest{.micro_batches = 5}, 1); }), "no error");
}

}  // namespace
}  // namespace orthant::plan
