#include "orthant/base/error.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/schedule/verify.hpp"
#include "tests/engine/cut_counts.hpp"
#include "tests/engine/networks.hpp"
#include "tests/engine/random_plan.hpp"
#include "tests/engine/ranks.hpp"
#include "tests/engine/small_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>
#include <string>

namespace orthant::test {
namespace {

using tensor::Shape;
using tensor::Window;

/// More of them, as `make test-long` asks for, take longer.
int times(int count) {
  const char* factor = std::getenv("ORTHANT_TEST_FACTOR");
  return count * (factor ? std::max(1, std::atoi(factor)) : 1);
}

constexpr int rank_counts[]{1, 2, 3, 4, 5, 6, 8};

double product(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Of small cases under random plans.
void expect_some_cuts(const CutCounts& cuts) {
  cuts.expect_percent({{"n", 30}, {"c", 40}, {"d", 35}, {"h", 32}, {"w", 35}, {"filters", 17}, {"channel_parts", 12}});
  cuts.expect_percent({{"uneven", 50}, {"idle", 45}, {"redistributed", 65}});
  cuts.expect_plans({{"empty", 2}});
  cuts.expect_percent({{"pieces", 15}, {"slabs", 25}});
}

/// Nothing where a pooling window misses all cells.
std::optional<model::Graph> make_graph(SmallCase& generator) {
  try {
    return generator.make();
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

/// Without biases y = F(x) grows as x does, so that <F'(x)* g, x> = <g, y>: backward is the adjoint of forward, every
/// exchange that both make included. Here g = y - t. No other run is needed to tell.
TEST(Parallel, BackwardIsTheAdjointOfForward) {
  int cases = 0;
  CutCounts cuts;
  for (std::uint64_t seed = 5000; cases < times(400); ++seed) {
    SmallCase generator(seed, false);
    const std::optional<model::Graph> made = make_graph(generator);
    if (!made) continue;
    const model::Graph& graph = *made;
    const plan::Plan plan = random_plan(graph, rank_counts[seed % std::size(rank_counts)], generator.random());
    const RanksOptions options{.lower = {.update = false, .input_gradient = true, .keep_output = true}};
    cuts.add(graph, plan);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    ++cases;
    const Outcome many = run_ranks(graph, plan, options);
    const std::vector<float> target = whole_target(graph, options);
    std::vector<float> gradient = many.output;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= target[i];
    EXPECT_EQ(product(many.tensors.at("input"), whole_input(graph, options)), product(gradient, many.output));
    if (HasFailure()) return;
  }
  expect_some_cuts(cuts);
}

TEST(Parallel, EqualsOneRankBitForBitOnWholeNumbers) {
  int cases = 0;
  CutCounts cuts;
  for (std::uint64_t seed = 0; cases < times(1200); ++seed) {
    SmallCase generator(seed);
    const std::optional<model::Graph> made = make_graph(generator);
    if (!made) continue;
    const model::Graph& graph = *made;
    const int ranks = rank_counts[seed % std::size(rank_counts)];
    const plan::Plan plan = random_plan(graph, ranks, generator.random());
    const RanksOptions options{.data = Data::integers,
                               .lower = {.update = false, .input_gradient = true, .keep_output = seed % 2 == 0}};
    cuts.add(graph, plan);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    EXPECT_EQ(plan::from_json(plan::to_json(plan), "plan"), plan);
    ++cases;
    try {
      const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
      const Outcome many = run_ranks(graph, plan, options);
      EXPECT_EQ(difference(many, one), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
  expect_some_cuts(cuts);
}

/// A short network with branches, and a plan in which every node is of a random stage on random ranks: stages share
/// ranks, ranks have several stages, tensors skip stages.
struct StagedCase {
  model::Graph graph;
  plan::Plan plan;
};

StagedCase staged_case(std::uint64_t seed) {
  Random random(seed);
  const auto pick = [&](int lo, int hi) { return static_cast<int>(random.integer(lo, hi)); };
  const int micro_batches = pick(1, 4);
  model::GraphBuilder builder("staged", 3, {micro_batches * pick(1, 3), 2, 1, pick(2, 4), pick(2, 4)});
  const int layers = pick(2, 5);
  for (int i = 0; i < layers; ++i) {
    const int src = builder.last();
    Window window{.size = {1, 3, 1}, .pad_lo = {0, 1, 0}, .pad_hi = {0, 1, 0}};
    if (pick(0, 1) == 0) window = {};
    const std::string name = std::to_string(i);
    const int conv = builder.add("conv" + name, model::Conv{.filters = 2, .window = window, .bias = false}, {src});
    if (pick(0, 2) == 0) builder.add("act" + name, model::Activation{.kind = model::ActivationKind::relu}, {conv});
    const int other = pick(0, 1) == 0 ? src : 0;
    if (pick(0, 1) == 0 && builder.shape(other) == builder.shape(builder.last()))
      builder.add("sum" + name, model::Add{}, {builder.last(), other});
    if (pick(0, 3) == 0)
      builder.add(
          "pool" + name,
          model::Pool{.window = {.size = {1, 3, 1}, .stride = {1, 2, 1}, .pad_lo = {0, 1, 0}, .pad_hi = {0, 1, 0}}});
  }
  const double weight = static_cast<double>(tensor::volume(builder.shape(builder.last()))) / 2;
  StagedCase result{.graph = builder.finish({.terms = {{.weight = weight}}}), .plan = {}};
  model::Graph one_micro_batch = result.graph;
  for (model::Node& node : one_micro_batch.nodes) node.shape.n /= micro_batches;
  result.plan = random_plan(one_micro_batch, rank_counts[seed % std::size(rank_counts)], random);
  result.plan.micro_batches = micro_batches;
  for (std::size_t i = 0; i < result.plan.nodes.size(); ++i) {
    int stage = 0;
    for (const int src : result.graph.nodes[i].srcs)
      stage = std::max(stage, result.plan.nodes[static_cast<std::size_t>(src)].stage);
    result.plan.nodes[i].stage = stage + (pick(0, 2) > 0 ? 1 : 0);
  }
  return result;
}

TEST(Parallel, AnyStagesOnAnyRanksEqualOneRank) {
  CutCounts cuts;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(times(300)); ++seed) {
    const StagedCase staged = staged_case(seed);
    cuts.add(staged.graph, staged.plan);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(staged.plan));
    const RanksOptions options{.lower = {.update = seed % 3 == 0, .keep_output = true}};
    try {
      plan::Plan one_rank = plan::serial_plan(staged.graph);
      one_rank.micro_batches = staged.plan.micro_batches;
      const Outcome one = run_ranks(staged.graph, one_rank, options);
      EXPECT_EQ(difference(run_ranks(staged.graph, staged.plan, options), one), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
  cuts.expect_percent({{"n", 40}, {"c", 60}, {"h", 55}, {"w", 60}, {"filters", 33}, {"channel_parts", 35}});
  cuts.expect_percent({{"stages", 90}, {"micro_batches", 55}, {"uneven", 38}, {"idle", 50}, {"redistributed", 65}});
}

constexpr model::Optimizer adam{.kind = model::OptimizerKind::adam};

/// Where gradients and weights lie changes no bit: neither whether the ranks of a machine share memory, nor whether
/// small gradients are read in place.
TEST(Parallel, SharedMemoryChangesNothing) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(times(150)); ++seed) {
    SmallCase generator(seed);
    const std::optional<model::Graph> made = make_graph(generator);
    if (!made) continue;
    const model::Graph& graph = *made;
    const int ranks = static_cast<int>(2 + seed % 3);
    const bool samples_only = seed % 2 == 0 && graph.nodes.front().shape.n >= ranks;  // gradients are read in place
    const plan::Plan plan =
        samples_only ? plan::make_plan(graph, "data", ranks) : random_plan(graph, ranks, generator.random());
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    RanksOptions options{.data = Data::reals, .runs = 3, .lower = {.optimizer = adam, .least_bytes_in_place = 0}};
    for (const int together : {2, ranks}) {
      options.ranks_per_machine = together;
      options.lower.shares_memory = false;
      const Outcome apart = run_ranks(graph, plan, options);
      options.lower.shares_memory = true;
      EXPECT_EQ(difference(run_ranks(graph, plan, options), apart), "") << together << " ranks on a machine";
    }
  }
}

/// Samples computed apart by the same kernel have the same bits; only sums over samples are added in another order.
TEST(Parallel, PiecesOfSamplesChangeNoBitButThoseOfSums) {
  const tensor::Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  model::GraphBuilder builder("three", 3, {.n = 7, .c = 16, .d = 6, .h = 8, .w = 8});
  builder.add("a", model::Conv{.filters = 32, .window = three});
  builder.add("relu", model::Activation{.kind = model::ActivationKind::relu});
  builder.add("b", model::Conv{.filters = 32, .window = three});
  builder.add("c", model::Conv{.filters = 32});
  const model::Graph graph = builder.finish({.terms = {{}}});
  const RanksOptions options{.data = Data::reals,
                             .lower = {.update = false, .input_gradient = true, .keep_output = true}};
  for (const model::Algorithm algorithm : model::named_algorithms) {
    plan::Plan plan = plan::serial_plan(graph);
    const auto set = [&](model::Pass pass, const std::vector<model::ConvPiece>& pieces) {
      for (plan::NodePlan& node : plan.nodes) node.kernels[pass] = {.algorithm = algorithm, .pieces = pieces};
    };
    for (const model::Pass pass : model::all_passes) set(pass, {});
    const Outcome whole = run_ranks(graph, plan, options);
    set(model::Pass::forward, {{algorithm, 4}, {algorithm, 1}});
    set(model::Pass::backward_data, {{algorithm, 2}});
    EXPECT_EQ(difference(run_ranks(graph, plan, options), whole), "") << model::name_of(algorithm);
    set(model::Pass::backward_weights, {{algorithm, 3}});
    for (const auto& [name, error] : errors(run_ranks(graph, plan, options), whole))
      EXPECT_LT(error, 1e-5) << model::name_of(algorithm) << " " << name;
  }
}

/// Whoever updates a parameter, and whatever part of it: put together in the order of files, the optimizer's state is
/// that of one rank, bit for bit, and there is a state for every item.
TEST(Parallel, OptimizerStateIsIndependentOfThePlan) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(times(150)); ++seed) {
    SmallCase generator(seed);
    const std::optional<model::Graph> made = make_graph(generator);
    if (!made) continue;
    const model::Graph& graph = *made;
    const plan::Plan plan = random_plan(graph, static_cast<int>(1 + seed % 5), generator.random());
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    const RanksOptions options{.lower = {.optimizer = adam}};
    const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
    EXPECT_EQ(difference(run_ranks(graph, plan, options), one), "");
    for (const model::Parameter& parameter : model::parameters(graph)) {
      if (!parameter.trainable) continue;
      for (const char* state : {".state0", ".state1"}) {
        const auto& values = one.tensors.at(parameter.name + state);
        EXPECT_TRUE(std::none_of(values.begin(), values.end(), [](float value) { return std::isnan(value); }));
      }
    }
  }
}

/// Of random networks under random plans.
void expect_many_cuts(const CutCounts& cuts) {
  cuts.expect_percent({{"n", 38}, {"c", 60}, {"d", 42}, {"h", 45}, {"w", 58}, {"filters", 35}, {"channel_parts", 29}});
  cuts.expect_percent({{"uneven", 58}, {"idle", 60}, {"redistributed", 65}});
}

/// The same of random networks with every op, by schedule::verify alone: no circle of waits, no memory that is written
/// while it is sent.
TEST(Parallel, SchedulesOfRandomPipelinesHaveNoMistakes) {
  int staged = 0;
  CutCounts cuts;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(times(300)); ++seed) {
    Random random(seed);
    model::Graph graph = random_network(seed);
    plan::Plan plan = random_plan(graph, rank_counts[seed % std::size(rank_counts)], random);
    int stage = 0;
    for (plan::NodePlan& node : plan.nodes) node.stage = random.integer(0, 2) == 0 ? ++stage : stage;
    plan.micro_batches = static_cast<int>(random.integer(1, 3));
    for (model::Node& node : graph.nodes) node.shape.n *= plan.micro_batches;
    if (!can_run(plan, graph)) plan.micro_batches = 1;  // soft Dice
    if (plan.micro_batches > 1 && plan.ranks > 1) ++staged;
    cuts.add(graph, plan);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    for (schedule::LowerOptions options :
         {schedule::LowerOptions{}, schedule::LowerOptions{.mode = schedule::Mode::evaluate, .keep_output = true},
          schedule::LowerOptions{.update = false, .input_gradient = true, .keep_output = true}}) {
      options.machines = plan::Machines::alike(plan.ranks, plan.exchanges.most_ranks_per_machine);
      options.least_bytes_in_place = 0;
      std::vector<schedule::Schedule> ranks;
      for (int rank = 0; rank < plan.ranks; ++rank) ranks.push_back(schedule::lower(graph, plan, rank, options));
      EXPECT_EQ(schedule::verify(std::span<const schedule::Schedule>(ranks)), std::vector<std::string>{});
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(staged, times(100));
  expect_many_cuts(cuts);
  cuts.expect_percent({{"stages", 90}, {"micro_batches", 33}});
}

/// As close as 1e-5 or, where sums cancel, as one rank's floats are to doubles.
void expect_gradients_agree(const model::Graph& graph, const plan::Plan& plan, const RanksOptions& options) {
  const Outcome one = run_ranks(graph, plan::serial_plan(graph), options);
  double limit = 1e-5;
  for (const auto& [name, error] : errors(one, run_in_double(graph, options))) limit = std::max(limit, 4 * error);
  for (const auto& [name, error] : errors(run_ranks(graph, plan, options), one)) EXPECT_LE(error, limit) << name;
}

/// Networks of random ops under plans with another cut for every node: redistributions, statistics and losses over any
/// ranks.
TEST(Parallel, RandomNetworksUnderMixedPlansAgreeWithOneRank) {
  CutCounts cuts;
  for (int seed = 0; seed < 150; ++seed) {
    const model::Graph graph = random_network(static_cast<std::uint64_t>(seed));
    Random random(static_cast<std::uint64_t>(seed));
    const plan::Plan plan =
        random_plan(graph, rank_counts[static_cast<std::size_t>(seed) % std::size(rank_counts)], random);
    cuts.add(graph, plan);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + plan::to_json(plan));
    const RanksOptions gradients{.data = Data::reals,
                                 .lower = {.update = false, .input_gradient = true, .keep_output = true}};
    const RanksOptions training{.data = Data::reals,
                                .runs = 10,
                                .learning_rate = 1e-3,
                                .lower = {.optimizer = {.momentum = 0.9, .weight_decay = 1e-3}}};
    try {
      expect_gradients_agree(graph, plan, gradients);
      const Outcome many = run_ranks(graph, plan, training);
      const Outcome one = run_ranks(graph, plan::serial_plan(graph), training);
      for (std::size_t i = 0; i < one.losses.size(); ++i)
        EXPECT_NEAR(many.losses[i], one.losses[i], 1e-4 * std::abs(one.losses[i])) << "step " << i + 1;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
  expect_many_cuts(cuts);
}

}  // namespace
}  // namespace orthant::test
