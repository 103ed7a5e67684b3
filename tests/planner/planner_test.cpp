#include "orthant/planner/planner.hpp"

#include "orthant/base/error.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/groups.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/planner/tables.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace orthant::planner {
namespace {

using oracle::Profile;
using test::Random;

int integer(Random& random, int lo, int hi) { return static_cast<int>(random.integer(lo, hi)); }

Profile machine(double gigabytes_per_second, int ranks_per_machine = 1) {
  Profile profile{.name = "test", .ranks_per_machine = ranks_per_machine};
  profile.memory_bytes = std::int64_t{16} << 30;
  profile.shares_memory = false;
  profile.settings.push_back({.ranks_per_machine = ranks_per_machine,
                              .flops_per_second = 1e12,
                              .memory_bytes_per_second = 1e11,
                              .step_seconds = 1e-6});
  profile.between = {.latency_seconds = 2e-6,
                     .bytes_per_second = gigabytes_per_second * 1e9,
                     .message_seconds = 1e-6,
                     .moves_alone = true};
  profile.inside = profile.between;
  profile.inside.bytes_per_second *= 4;
  return profile;
}

Profile random_machine(Random& random) {
  constexpr std::array speeds{0.01, 0.3, 3.0, 30.0};
  return machine(speeds[static_cast<std::size_t>(integer(random, 0, 3))], integer(random, 1, 2));
}

/// A few layers, one after the other or around a residual sum.
model::Graph random_network(Random& random, int most_layers) {
  const tensor::Shape sample{
      .n = integer(random, 1, 8), .c = integer(random, 1, 4), .d = 1, .h = 4 * integer(random, 2, 4), .w = 8};
  model::GraphBuilder builder("random", 2, sample);
  const tensor::Window window{.size = {1, 3, 3}, .pad_lo = {0, 1, 1}, .pad_hi = {0, 1, 1}};
  const int layers = integer(random, 1, most_layers);
  const int channels = 4 * integer(random, 1, 4);
  for (int i = 0; i < layers; ++i) {
    const int before = builder.last();
    const std::string number = std::to_string(i);
    const int conv = builder.add("conv" + number, model::Conv{.filters = channels, .window = window});
    if (i > 0 && integer(random, 0, 2) == 0) builder.add("sum" + number, model::Add{}, {conv, before});
    if (integer(random, 0, 1) == 0) builder.add("norm" + number, model::BatchNorm{});
    builder.add("act" + number, model::Activation{});
  }
  builder.add("pool", model::GlobalAveragePool{});
  builder.add("flat", model::Flatten{});
  builder.add("fc", model::Dense{.features = 4});
  return builder.finish({.terms = {{}}});
}

model::Graph network(const char* name, const char* input, std::int64_t samples) {
  return model::load_network(name, {.input = input, .mini_batch = samples});
}

/// The next combination of choices; false after the last.
bool next_combination(const Problem& problem, std::vector<int>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (++choices[i] < static_cast<int>(problem.variables[i].size())) return true;
    choices[i] = 0;
  }
  return false;
}

/// Tables of a network on a machine, and all that they refer to.
struct Priced {
  Priced(const model::Graph& graph, const Profile& profile, int ranks, const CutLimits& limits)
      : network{profile, plan::Machines::alike(ranks, std::min(ranks, profile.ranks_per_machine)),
                std::min(ranks, profile.ranks_per_machine)},
        prices(profile, 1, network.ranks_per_machine),
        cuts(graph, prices, network, oracle::StepOptions{}.optimizer),
        tables(plan::grid_groups(graph), candidate_cuts(plan::grid_groups(graph), ranks, {}, cuts, limits), cuts) {}
  Network network;
  oracle::Prices prices;
  CutPrices cuts;
  Tables tables;
};

TEST(Tables, AreSearchedAsTryingEverythingDoes) {
  Random random(11);
  for (int i = 0; i < 320; ++i) {
    SCOPED_TRACE(i);
    const model::Graph graph = random_network(random, 3);
    const Profile profile = random_machine(random);
    const Priced priced(graph, profile, integer(random, 2, 4), {.fast = 2, .small = 1, .shared = 1});
    Problem problem = priced.tables.problem(0.5);
    if (i % 2 == 1) {
      const Answer fastest = search(problem);
      problem.most_bytes = random.real(0.6, 1.0) * fastest.cost.bytes;
    }
    std::optional<double> best;
    std::vector<int> choices(problem.variables.size());
    do {
      const Cost cost = total(problem, choices);
      if (cost.bytes <= problem.most_bytes && (!best || cost.seconds < *best)) best = cost.seconds;
    } while (next_combination(problem, choices));
    const Answer answer = search(problem);
    ASSERT_EQ(answer.fits, best.has_value());
    if (best) {
      EXPECT_NEAR(answer.cost.seconds, *best, 1e-9 * *best);
    }
  }
}

TEST(Planner, ComesCloseToTheBestOfAllWholePlans) {
  Random random(12);
  double worst = 1;
  int equal = 0;
  for (int i = 0; i < 12; ++i) {
    const model::Graph graph = random_network(random, 2);
    const Profile profile = random_machine(random);
    const int ranks = integer(random, 1, 2) * 2;
    const Priced priced(graph, profile, ranks, {.fast = 4, .small = 1, .shared = 2});
    const Problem problem = priced.tables.problem(0.5);
    double best = std::numeric_limits<double>::infinity();
    std::vector<int> choices(problem.variables.size());
    int left = 400;
    do {
      try {
        best =
            std::min(best, oracle::predict(graph, priced.tables.plan(choices, ranks, 0.5), priced.prices, {}).seconds);
      } catch (const base::Error&) {
        continue;  // ranks without work
      }
    } while (--left > 0 && next_combination(problem, choices));
    const Planned planned = plan_best(graph, profile, {.ranks = ranks});
    ASSERT_TRUE(planned.found());
    worst = std::max(worst, planned.best.prediction.seconds / best);
    if (planned.best.prediction.seconds <= best * 1.000001) ++equal;
  }
  // Tables cannot know everything that happens in a whole step, and such small steps are mostly latency.
  EXPECT_LE(worst, 1.3);
  EXPECT_GE(equal, 6);
}

TEST(Planner, IsNeverWorseThanANamedStrategyAndAlwaysSaysTheSame) {
  Random random(13);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const model::Graph graph = random_network(random, 3);
    const Profile profile = random_machine(random);
    const PlanningOptions options{.ranks = integer(random, 1, 8)};
    const Planned planned = plan_best(graph, profile, options);
    if (planned.found()) {
      plan::verify(planned.best.plan, graph);
    }
    for (const std::string& name : plan::strategy_names()) {
      try {
        const plan::Plan plan = plan::make_plan(graph, name, options.ranks);
        ASSERT_TRUE(planned.found());
        EXPECT_LE(planned.best.prediction.seconds, oracle::predict(graph, plan, profile, {}).seconds * 1.000001)
            << name;
      } catch (const base::Error&) {
        continue;
      }
    }
    EXPECT_EQ(plan::to_json(plan_best(graph, profile, options).best.plan), plan::to_json(planned.best.plan));
  }
}

TEST(Planner, PredictsItsPlanAsTheOracleDoes) {
  const model::Graph graph = network("cosmoflow", "4x32x32x32", 2);
  const Profile profile = machine(1);
  const Planned planned = plan_best(graph, profile, {.ranks = 4});
  ASSERT_TRUE(planned.found());
  EXPECT_DOUBLE_EQ(oracle::predict(graph, planned.best.plan, profile, {}).seconds, planned.best.prediction.seconds);
  EXPECT_TRUE(planned.search.exact || planned.search.bound_seconds > 0);
  EXPECT_FALSE(planned.reason.empty());
}

TEST(Planner, ChangesItsMindWithTheBandwidth) {
  const model::Graph graph = network("vgg16", "3x64x64", 8);
  const Planned fast = plan_best(graph, machine(100), {.ranks = 4});
  const Planned slow = plan_best(graph, machine(0.05), {.ranks = 4});
  EXPECT_NE(plan::to_json(fast.best.plan), plan::to_json(slow.best.plan));
}

TEST(Planner, KeepsToTheMemoryThereIs) {
  const model::Graph graph = network("cosmoflow", "4x64x64x64", 4);
  const Profile profile = machine(0.5);
  const Planned free = plan_best(graph, profile, {.ranks = 4});
  const std::int64_t most = free.best.prediction.memory.total() * 9 / 10;
  const Planned tight = plan_best(graph, profile, {.ranks = 4, .memory_bytes_per_rank = most});
  for (const Candidate& one : tight.strategies) {
    if (one.refused.empty()) {
      EXPECT_EQ(one.fits, one.prediction.memory.total() <= most) << one.name;
    }
  }
  if (tight.found()) {
    EXPECT_LE(tight.best.prediction.memory.total(), most);
    EXPECT_GE(tight.best.prediction.seconds, free.best.prediction.seconds);
  } else {
    EXPECT_FALSE(tight.advice.empty());
  }
}

TEST(Planner, SaysWhatIsShortIfNothingFits) {
  const model::Graph graph = network("cosmoflow", "4x64x64x64", 4);
  const Planned planned = plan_best(graph, machine(1), {.ranks = 2, .memory_bytes_per_rank = 60 << 20});
  EXPECT_FALSE(planned.found());
  EXPECT_NE(planned.advice.find("nothing fits"), std::string::npos) << planned.advice;
  EXPECT_NE(planned.advice.find("ranks would be enough"), std::string::npos) << planned.advice;
}

TEST(Planner, PlansForOneRankAndRefusesCountsThatCannotBe) {
  const model::Graph graph = network("cosmoflow", "4x32x32x32", 1);
  const Planned one = plan_best(graph, machine(1), {.ranks = 1});
  ASSERT_TRUE(one.found());
  EXPECT_NEAR(one.best.prediction.seconds, one.serial->seconds, 1e-12);
  EXPECT_THROW(plan_best(graph, machine(1), {.ranks = 0}), base::Error);
  EXPECT_THROW(plan_best(graph, machine(1), {.ranks = 100'001}), base::Error);
}

TEST(Planner, SaysOfEveryStrategyWhyItCannotRunOnVeryManyRanks) {
  const model::Graph graph = network("cosmoflow", "4x32x32x32", 1);
  const Planned planned = plan_best(graph, machine(1), {.ranks = 100'000});
  for (const Candidate& one : planned.strategies) EXPECT_FALSE(one.refused.empty()) << one.name;
  EXPECT_TRUE(planned.found() || !planned.best.refused.empty());
}

TEST(Planner, KnowsWhereFiltersAndChannelsStop) {
  const Planned planned = plan_best(network("cosmoflow", "4x64x64x64", 2), machine(1), {.ranks = 32, .search = false});
  for (const Candidate& one : planned.strategies) {
    if (one.name == "filter" || one.name == "channel") {
      EXPECT_NE(one.refused.find("stops at 16 ranks"), std::string::npos) << one.refused;
    }
  }
}

const Candidate& strategy(const Planned& planned, const std::string& name) {
  const auto found = std::find_if(planned.strategies.begin(), planned.strategies.end(),
                                  [&](const Candidate& one) { return one.name == name; });
  return *found;
}

TEST(Planner, FindsAPlanForSamplesThatDoNotFitOneRank) {
  const model::Graph graph = model::load_network(
      "cosmoflow", {.input = "4x512x512x512", .mini_batch = 8, .settings = {{"batch_norm", "true"}}});
  const Profile profile = oracle::shipped_profile("lassen-v100");
  const Planned planned = plan_best(graph, profile, {.ranks = 8, .search = false});
  EXPECT_TRUE(strategy(planned, "data").refused.empty());
  EXPECT_FALSE(strategy(planned, "data").fits);
  const Candidate more = quick_best(graph, profile, {.ranks = 64});
  EXPECT_TRUE(more.fits) << more.refused;
}

double seconds_of(const model::Graph& graph, const char* grid, const char* profile) {
  return oracle::predict(graph, plan::make_plan(graph, plan::parse_grid(grid)), oracle::shipped_profile(profile),
                         {.most_messages = 100'000})
      .seconds;
}

TEST(Planner, ShowsHowVolumesScale) {
  // Cutting space uses more ranks than there are samples, and cutting samples too is better than space alone.
  const model::Graph volumes = network("cosmoflow", "4x256x256x256", 4);
  EXPECT_LT(seconds_of(volumes, "n4d2h2w2", "lassen-v100"), 0.2 * seconds_of(volumes, "n4", "lassen-v100"));
  const model::Graph large = network("cosmoflow", "4x512x512x512", 64);
  EXPECT_LT(seconds_of(large, "n64d4h4w2", "lassen-v100"), seconds_of(large, "d16h16w8", "lassen-v100"));
}

TEST(Planner, CutsFiltersWhereTheMiniBatchIsExhaustedAndLayersAreWide) {
  for (const char* name : {"resnet50", "vgg16"}) {
    const model::Graph images = network(name, "3x224x224", 512);
    for (const char* other : {"f16", "c16"})
      EXPECT_LT(seconds_of(images, "n16", "abci-v100"), seconds_of(images, other, "abci-v100")) << name << other;
  }
  // With two samples, data parallelism can use two ranks only; its sums of gradients are long.
  const model::Graph few = network("vgg16", "3x224x224", 2);
  const Planned planned = plan_best(few, oracle::shipped_profile("abci-v100"), {.ranks = 8});
  EXPECT_LT(planned.best.prediction.seconds, 0.5 * seconds_of(few, "n2", "abci-v100"));
  for (std::size_t i = 0; i < few.nodes.size(); ++i) {
    const auto* dense = std::get_if<model::Dense>(&few.nodes[i].op);
    if (dense && dense->features == 4096) {
      EXPECT_EQ(planned.best.plan.nodes[i].grid.c, 8) << few.nodes[i].name;
    }
  }
}

TEST(Planner, AnswersWhatWouldBeIf) {
  const model::Graph graph = network("cosmoflow", "4x64x64x64", 4);
  const Profile profile = machine(0.2);
  const PlanningOptions options{.ranks = 4};
  const Planned planned = plan_best(graph, profile, options);
  const std::vector<WhatIf> answers = what_ifs(graph, profile, options, planned.best);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].best.plan.ranks, 2);
  EXPECT_GT(answers[0].best.prediction.seconds, planned.best.prediction.seconds);
  EXPECT_EQ(answers[1].options.ranks, 8);
  EXPECT_EQ(answers[1].best.plan.ranks, 8);
  EXPECT_LE(answers[2].best.prediction.seconds, planned.best.prediction.seconds);
  EXPECT_EQ(answers[3].mini_batch, 2);
  EXPECT_LT(answers[3].best.prediction.seconds, planned.best.prediction.seconds);
}

TEST(Planner, PricesAnotherCutOfOneLayer) {
  const model::Graph graph = network("cosmoflow", "4x64x64x64", 1);
  const plan::Plan plan = plan::make_plan(graph, plan::parse_grid("d4"));
  const Profile profile = machine(0.2);
  const auto other = cut_otherwise(graph, profile, {.ranks = 4}, plan, 1);
  ASSERT_TRUE(other);
  EXPECT_NE(other->plan.nodes[1].grid, plan.nodes[1].grid);
  EXPECT_EQ(tensor::parts(other->plan.nodes[1].grid), 4);
  EXPECT_DOUBLE_EQ(other->prediction.seconds, oracle::predict(graph, other->plan, profile, {}).seconds);
}

}  // namespace
}  // namespace orthant::planner
