// Every form of exchange, at many numbers of ranks and ranks per machine, with threads as ranks.
#include "tests/engine/forms.hpp"

#include "tests/engine/ranks.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

using plan::Form;

constexpr model::Optimizer momentum{.kind = model::OptimizerKind::sgd, .momentum = 0.5};

plan::Plan plan_of(const model::Graph& graph, const std::string& grid, Form form, bool two_levels) {
  plan::Plan plan = plan::make_plan(graph, plan::parse_grid(grid));
  plan.exchanges = plan::forced(form, two_levels);
  return plan;
}

std::string title(const std::string& grid, Form form, int per_machine) {
  return grid + ", " + plan::name_of(form) + ", " + std::to_string(per_machine) + " ranks per machine";
}

class Forms : public testing::TestWithParam<int> {};

TEST_P(Forms, EqualOneRankBitForBitOnWholeNumbers) {
  const int ranks = GetParam();
  const model::Graph graph = exact_network(16);
  const std::string grid = "n" + std::to_string(ranks);
  for (const bool update : {true, false}) {
    RanksOptions options{.learning_rate = 0.25,
                         .lower = {.optimizer = momentum, .update = update, .keep_output = true}};
    options.lower.least_bytes_in_place = 0;
    const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
    for (const Form form : all_forms) {
      for (const int per_machine : {1, 2, 3, ranks}) {
        SCOPED_TRACE(title(grid, form, per_machine));
        options.ranks_per_machine = per_machine;
        const plan::Plan plan = plan_of(graph, grid, form, true);
        EXPECT_EQ(difference(run_ranks(graph, plan, options), one), "");
      }
    }
  }
}

/// The statistics of the forward pass are exact, and so the output has the same bits; other sums are not exact.
TEST_P(Forms, StatisticsAreThoseOfOneRank) {
  const int ranks = GetParam();
  const model::Graph graph = network_with_statistics(16);
  const std::string grid = "n" + std::to_string(ranks);
  RanksOptions options{.lower = {.update = false, .keep_output = true}};
  const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
  for (const Form form : all_forms) {
    for (const int per_machine : {1, 2, 3, ranks}) {
      SCOPED_TRACE(title(grid, form, per_machine));
      options.ranks_per_machine = per_machine;
      const Outcome many = run_ranks(graph, plan_of(graph, grid, form, true), options);
      EXPECT_NEAR(many.losses.back(), one.losses.back(), 1e-12 * one.losses.back());
      EXPECT_EQ(many.output, one.output);
      for (const auto& [name, error] : errors(many, one)) EXPECT_LT(error, 1e-5) << name;
    }
  }
}

/// Groups of all sizes, with blocks that are not equal and with members that lean on others.
TEST_P(Forms, GatherAndScatterAsOneRankBitForBit) {
  const int ranks = GetParam();
  const model::Graph graph = network_with_gathers(2);
  for (const std::string cut : {"f", "c", "n2f"}) {
    const std::string grid = cut + std::to_string(cut == "n2f" ? std::max(1, ranks / 2) : ranks);
    RanksOptions options{.learning_rate = 0.25, .lower = {.optimizer = momentum, .keep_output = true}};
    const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
    for (const Form form : {Form::direct, Form::recursive}) {
      SCOPED_TRACE(title(grid, form, 1));
      EXPECT_EQ(difference(run_ranks(graph, plan_of(graph, grid, form, true), options), one), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Forms, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

/// Cuts of several sorts: groups that are not consecutive, that differ from layer to layer, and pipelines.
TEST(FormsOfMixedPlans, EqualOneRankBitForBitOnWholeNumbers) {
  const model::Graph graph = exact_network(8);
  for (const std::string grid : {"n2d2", "n4f2", "n2f2d2", "d2h2", "n2d2h2", "p2", "n3d2"}) {
    RanksOptions options{.lower = {.optimizer = momentum, .update = true, .keep_output = true}};
    options.lower.least_bytes_in_place = 0;
    const plan::Plan cut = plan::make_plan(graph, plan::parse_grid(grid));
    plan::Plan serial = plan::serial_plan(graph);
    serial.micro_batches = cut.micro_batches;
    const Outcome one = run_ranks(graph, serial, options);
    for (const Form form : all_forms) {
      for (const int per_machine : {1, 2, 3}) {
        SCOPED_TRACE(title(grid, form, per_machine));
        options.ranks_per_machine = per_machine;
        for (const bool two_levels : {true, false}) {
          const plan::Plan plan = plan_of(graph, grid, form, two_levels);
          EXPECT_EQ(difference(run_ranks(graph, plan, options), one), "");
        }
      }
    }
  }
}

/// The first convolution is cut in space, the next one over filters: every rank wants what all have.
TEST(FormsOfMixedPlans, GatherWhatWasCutInSpace) {
  const model::Graph graph = network_with_gathers(2);
  const RanksOptions options{.lower = {.optimizer = momentum, .keep_output = true}};
  const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
  for (const tensor::Grid& space : {tensor::Grid{.d = 2}, tensor::Grid{.h = 2, .w = 2},
                                    tensor::Grid{.d = 2, .h = 2, .w = 2}, tensor::Grid{.n = 2, .d = 2, .h = 2}}) {
    const std::string filters = "n" + std::to_string(space.n) + "f" + std::to_string(tensor::parts(space) / space.n);
    plan::Plan plan = plan_of(graph, filters, Form::recursive, true);
    plan.nodes[0].grid = plan.nodes[1].grid = space;
    SCOPED_TRACE(plan::to_text(plan));
    EXPECT_EQ(difference(run_ranks(graph, plan, options), one), "");
  }
}

/// When messages arrive changes no bit, whatever the numbers are.
TEST(FormsUnderDelays, HaveTheSameBits) {
  const model::Graph graph = network_with_statistics(6);
  for (const Form form : all_forms) {
    SCOPED_TRACE(plan::name_of(form));
    RanksOptions options{.data = Data::reals, .runs = 2, .lower = {.optimizer = momentum, .keep_output = true}};
    options.lower.least_bytes_in_place = 0;
    options.ranks_per_machine = 2;
    const plan::Plan plan = plan_of(graph, "n6", form, true);
    const Outcome first = run_ranks(graph, plan, options);
    for (options.delays = 1; options.delays <= 20; ++options.delays)
      ASSERT_EQ(difference(run_ranks(graph, plan, options), first), "") << "delays " << options.delays;
  }
}

}  // namespace
}  // namespace orthant::test
