#include "orthant/base/error.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/schedule/verify.hpp"
#include "tests/engine/cut_counts.hpp"
#include "tests/engine/networks.hpp"
#include "tests/engine/random_plan.hpp"
#include "tests/engine/ranks.hpp"

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

/// A network around one random op that is exact on small whole numbers.
class SmallCase {
 public:
  explicit SmallCase(std::uint64_t seed, bool biases = true) : random_(seed), biases_(biases) {}

  model::Graph make() {
    const Shape shape{pick(1, 3), pick(1, 6), pick(1, 7), pick(1, 6), pick(1, 8)};
    model::GraphBuilder builder("case", 3, shape);
    if (pick(0, 2) == 0) builder.add("before", conv(builder.shape(0), 1));
    add_op(builder, builder.last());
    if (pick(0, 3) == 0) builder.add("act", activation());
    if (pick(0, 3) == 0 && builder.shape(builder.last()).d > 1)
      builder.add("after", conv(builder.shape(builder.last()), 1));
    // The gradient of this sum of squares is the difference itself: a whole number.
    const double weight = static_cast<double>(tensor::volume(builder.shape(builder.last()))) / 2;
    return builder.finish({.terms = {{.weight = weight}}});
  }

  Random& random() { return random_; }

 private:
  int pick(int lo, int hi) { return static_cast<int>(random_.integer(lo, hi)); }
  bool bias() { return pick(0, 1) == 1 && biases_; }

  model::Activation activation() {
    if (pick(0, 1) == 0) return {.kind = model::ActivationKind::relu};
    return {.kind = model::ActivationKind::leaky_relu, .slope = 0.5};
  }

  /// Kernels larger than a block, strides in every phase, dilation, uneven padding; never a place that sees only
  /// padding.
  Window window(const Shape& extents, int largest) {
    Window result;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.size[dim] = pick(1, largest);
      result.dilation[dim] = pick(0, 3) == 0 ? 2 : 1;
      result.stride[dim] = pick(1, 3);
      const std::int64_t reach = tensor::reach(result, dim);
      const auto most = static_cast<int>(std::min<std::int64_t>(2, reach - 1));
      result.pad_lo[dim] = pick(0, most);
      result.pad_hi[dim] = pick(0, most);
      if (extents[dim] + result.pad_lo[dim] + result.pad_hi[dim] < reach) {
        result.size[dim] = result.dilation[dim] = 1;
        result.pad_lo[dim] = result.pad_hi[dim] = 0;
      }
    }
    return result;
  }

  /// Sizes that averages divide by without rest.
  Window even_window(const Shape& extents) {
    Window result;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.size[dim] = extents[dim] >= 2 ? pick(1, 2) : 1;
      result.stride[dim] = pick(1, 3);
      if (result.size[dim] == 2) result.pad_lo[dim] = pick(0, 1);
    }
    return result;
  }

  model::Conv conv(const Shape& src, std::int64_t groups) {
    return {
        .filters = groups * pick(1, groups > 1 ? 3 : 7), .window = window(src, 4), .groups = groups, .bias = bias()};
  }

  std::int64_t some_groups(std::int64_t channels) {
    std::int64_t groups = pick(1, static_cast<int>(channels));
    while (channels % groups != 0) --groups;
    return groups;
  }

  void add_op(model::GraphBuilder& builder, int src) {
    const Shape shape = builder.shape(src);
    switch (pick(0, 22)) {
      case 19: {
        builder.add("shuffle", model::ChannelShuffle{.groups = some_groups(shape.c)});
        break;
      }
      case 20: builder.add("max", model::GlobalMaxPool{}); break;
      case 21: {
        model::PixelShuffle shuffle{.to_channels = pick(0, 1) == 0};
        for (const tensor::Dim dim : tensor::spatial_dims) {
          if (shuffle.to_channels ? shape[dim] % 2 == 0 : pick(0, 1) == 0) shuffle.factor[dim] = 2;
          if (shuffle.to_channels && shape[dim] % 3 == 0) shuffle.factor[dim] = 3;
        }
        const std::int64_t count = shuffle.factor.d * shuffle.factor.h * shuffle.factor.w;
        if (!shuffle.to_channels) builder.add("widen", model::Conv{.filters = count * pick(1, 3), .bias = false});
        builder.add("pixels", shuffle);
        break;
      }
      case 14: {
        if (!biases_) return add_op(builder, src);  // a product grows faster than its sources
        const int gate = builder.add("gate", model::Conv{.filters = pick(0, 1) == 0 ? shape.c : 1, .bias = false});
        builder.add("product", model::Multiply{}, {src, gate});
        break;
      }
      case 15: builder.add("pad", pad(shape)); break;
      case 16: builder.add("slice", slice(shape)); break;
      case 17:
        builder.add("resize",
                    model::Resize{.mode = pick(0, 1) == 0 ? model::ResizeMode::nearest : model::ResizeMode::linear,
                                  .factor = {2, 2, 1}});
        break;
      case 18:
        if (biases_) builder.add("prelu", model::PRelu{.shared = pick(0, 1) == 1});
        builder.add("affine", model::Affine{.bias = bias()});
        break;
      case 0:
      case 1:
      case 2:
      case 22: builder.add("conv", conv(shape, 1)); break;
      case 3: builder.add("grouped", conv(shape, some_groups(shape.c))); break;
      case 4: {
        const std::int64_t groups = pick(0, 1) == 0 ? 1 : some_groups(shape.c);
        Window up = window({1, 1, 9, 9, 9}, 3);
        for (const tensor::Dim dim : tensor::spatial_dims) up.pad_lo[dim] = up.pad_hi[dim] = 0;
        builder.add(
            "up", model::ConvTranspose{.filters = groups * pick(1, 4), .window = up, .groups = groups, .bias = bias()});
        break;
      }
      case 5: builder.add("max", model::Pool{.kind = model::PoolKind::max, .window = window(shape, 3)}); break;
      case 6:
        builder.add("average", model::Pool{.kind = model::PoolKind::average, .window = even_window(shape)});
        break;
      case 7: builder.add("scale", model::Scale{.factor = 2, .offset = bias() ? 3.0 : 0.0}); break;
      case 8: builder.add("drop", model::Dropout{.rate = 0.5}); break;
      case 9: {
        const int other = builder.add("conv", conv_same(shape));
        builder.add("sum", model::Add{}, {src, other});
        break;
      }
      case 10: {
        const int other = builder.add("conv", conv_same(shape));
        builder.add("join", model::Concat{}, {other, src, other});
        break;
      }
      case 11:
        builder.add("flat", model::Flatten{});
        builder.add("dense", model::Dense{.features = pick(1, 9), .bias = bias()});
        builder.add("dense2", model::Dense{.features = pick(1, 9), .bias = bias()});
        break;
      case 12:
        builder.add("conv", conv(shape, 1));
        builder.add("act1", activation());
        builder.add("max",
                    model::Pool{.kind = model::PoolKind::max, .window = window(builder.shape(builder.last()), 2)});
        break;
      default: builder.add("act0", activation()); break;
    }
  }

  model::Pad pad(const Shape& extents) {
    model::Pad result{.mode = static_cast<model::PadMode>(pick(0, 2))};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const auto most = static_cast<int>(std::min<std::int64_t>(3, extents[dim] - 1));
      result.lo[dim] = pick(0, most);
      result.hi[dim] = pick(0, most);
    }
    return result;
  }

  model::Slice slice(const Shape& extents) {
    model::Slice result{.first_channel = pick(0, static_cast<int>(extents.c) - 1)};
    for (const tensor::Dim dim : tensor::spatial_dims) {
      result.first[dim] = pick(0, static_cast<int>(extents[dim]) - 1);
      result.step[dim] = pick(1, 2);
    }
    return result;
  }

  /// A convolution that keeps the shape.
  model::Conv conv_same(const Shape& src) {
    Window same;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      same.size[dim] = pick(0, 1) == 0 ? 1 : 3;
      same.pad_lo[dim] = same.pad_hi[dim] = same.size[dim] / 2;
    }
    return {.filters = src.c, .window = same, .bias = false};
  }

  Random random_;
  bool biases_;
};

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
