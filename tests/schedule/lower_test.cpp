#include "orthant/model/argument_positions.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/schedule/schedule.hpp"
#include "orthant/schedule/text.hpp"
#include "tests/schedule/verified.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orthant::schedule {
namespace {

using model::Activation;
using model::ActivationKind;
using model::BatchNorm;
using model::Conv;
using model::GraphBuilder;

constexpr Activation leaky{.kind = ActivationKind::leaky_relu};
const model::Loss mse{.terms = {{}}};

Conv conv3(std::int64_t filters) {
  return {.filters = filters,
          .window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)},
          .bias = false};
}

GraphBuilder start() { return {"net", 3, {.n = 1, .c = 2, .d = 8, .h = 8, .w = 8}}; }

std::string text(const model::Graph& graph, const LowerOptions& options = {}) {
  return to_text(lower_verified(graph, plan::serial_plan(graph), 0, options));
}

TEST(Lower, ActivationRidesOnConvolutionAndPoolingWritesItsGradientOverIt) {
  GraphBuilder builder = start();
  builder.add("conv", conv3(4));
  builder.add("act", leaky);
  builder.add("pool", model::Pool{.kind = model::PoolKind::average,
                                  .window = {.size = tensor::cube(2), .stride = tensor::cube(2)}});

  EXPECT_EQ(text(builder.finish(mse)),
            "conv.forward conv(input, conv.weight, -, act)\n"
            "pool.forward pool(act, pool, -)\n"
            "pool.loss_sums loss_sums(pool, target, loss.sums)\n"
            "pool.loss loss(pool, target, loss.sums, pool, loss)\n"
            "pool.backward_data pool(pool, -, act, act)\n"
            "conv.backward_weights conv(input, act, conv.weight.gradient, -)\n"
            "conv.clear_gap fill(conv.weight.gap)\n"
            "conv.weight.update update(conv.weight.bucket, conv.weight.bucket.gradient, -, -, -)\n");
}

TEST(Lower, ResidualSumAndActivationRideOnBatchNorm) {
  GraphBuilder builder = start();
  const int skip = builder.add("conv1", conv3(4));
  builder.add("conv2", conv3(4));
  const int norm = builder.add("bn", BatchNorm{});
  builder.add("add", model::Add{}, {norm, skip});
  builder.add("act", leaky);

  EXPECT_EQ(
      text(builder.finish(mse), {.update = false}),
      "conv1.forward conv(input, conv1.weight, -, conv1)\n"
      "conv2.forward conv(conv1, conv2.weight, -, conv2)\n"
      "bn.forward_sums norm_sums(conv2, bn.sums)\n"
      "bn.forward norm(conv2, bn.weight, bn.bias, bn.running_mean, bn.running_var, bn.sums, bn.saved, conv1, act)\n"
      "act.loss_sums loss_sums(act, target, loss.sums)\n"
      "act.loss loss(act, target, loss.sums, output.gradient, loss)\n"
      "bn.backward_sums norm_sums(output.gradient, -, conv2, act, bn.weight, bn.bias, bn.saved, bn.diff_sums, "
      "bn.weight.gradient, bn.bias.gradient, output.gradient)\n"
      "bn.backward norm(output.gradient, -, conv2, -, bn.weight, bn.bias, bn.saved, bn.diff_sums, conv2)\n"
      "conv2.backward_weights conv(conv1, conv2, conv2.weight.gradient, -)\n"
      "conv2.backward_data conv(conv2, conv2.weight, conv1.gradient)\n"
      "conv1.sum_gradients add(output.gradient, conv1.gradient, output.gradient)\n"
      "conv1.backward_weights conv(input, output.gradient, conv1.weight.gradient, -)\n");
}

TEST(Lower, GradientOfConcatIsSplitWithoutCopies) {
  GraphBuilder builder = start();
  const int a = builder.add("bn1", BatchNorm{});
  const int b = builder.add("bn2", BatchNorm{}, {a});
  builder.add("concat", model::Concat{}, {b, a});

  const std::string steps = text(builder.finish(mse), {.update = false});

  EXPECT_EQ(steps.find("copy_gradient"), std::string::npos) << steps;
  EXPECT_NE(steps.find("bn1.backward norm(concat, bn1.gradient"), std::string::npos) << steps;
}

TEST(Lower, EvaluationHasNoBackwardAndNoDropout) {
  GraphBuilder builder = start();
  builder.add("conv", conv3(4));
  builder.add("drop", model::Dropout{.rate = 0.5});

  EXPECT_EQ(text(builder.finish(mse), {.mode = Mode::evaluate}),
            "conv.forward conv(input, conv.weight, -, conv)\n"
            "drop.loss_sums loss_sums(conv, target, loss.sums)\n"
            "drop.loss loss(conv, target, loss.sums, -, loss)\n");
}

TEST(Lower, InputGradientIsComputedOnlyWhenAsked) {
  GraphBuilder builder = start();
  builder.add("conv", conv3(4));
  const model::Graph graph = builder.finish(mse);

  EXPECT_TRUE(lower_verified(graph, plan::serial_plan(graph), 0, {}).input_gradients.empty());
  const Schedule asked = lower_verified(graph, plan::serial_plan(graph), 0, {.input_gradient = true});
  ASSERT_EQ(asked.input_gradients.size(), 1U);
  EXPECT_TRUE(asked.buffers[static_cast<std::size_t>(asked.input_gradients.front().buffer)].persistent);
}

TEST(Lower, SharedGradientOfAnAddIsNotOverwritten) {
  GraphBuilder builder = start();
  const int a = builder.add("conv1", conv3(2));
  const int b = builder.add("conv2", conv3(2), {0});
  builder.add("add", model::Add{}, {a, b});
  builder.add("scale", model::Scale{.factor = 2});

  const model::Graph graph = builder.finish(mse);
  const Schedule schedule = lower_verified(graph, plan::serial_plan(graph), 0, {.update = false});
  const int last_reader = static_cast<int>(schedule.steps.size()) - 1;

  EXPECT_EQ(schedule.steps[static_cast<std::size_t>(last_reader)].arguments[1],
            schedule.steps[static_cast<std::size_t>(last_reader - 1)].arguments[1]);
}

/// The step that finishes the exchange of this name.
int finish_of(const Schedule& schedule, const std::string& name) {
  const auto found = std::find_if(schedule.steps.begin(), schedule.steps.end(),
                                  [&](const Step& step) { return step.name == name + ".finish"; });
  EXPECT_NE(found, schedule.steps.end()) << name;
  return static_cast<int>(found - schedule.steps.begin());
}

/// How the messages of the exchanges with this ending are delivered.
std::set<Transport> transports(const Schedule& schedule, const std::string& ending) {
  std::set<Transport> found;
  for (const Exchange& exchange : schedule.exchanges) {
    if (!exchange.name.ends_with(ending)) continue;
    for_each_message(exchange, [&](const Message& message, bool /*is_receive*/) { found.insert(message.transport); });
  }
  return found;
}

/// Six convolutions, each of more than a bucket.
model::Graph six_buckets(std::int64_t samples = 2) {
  GraphBuilder builder("net", 3, {.n = samples, .c = 144, .d = 4, .h = 4, .w = 4});
  for (int i = 0; i < 6; ++i) builder.add("conv" + std::to_string(i), conv3(144));
  return builder.finish(mse);
}

TEST(Lower, GradientsThatOthersReadInPlaceStayUntilTheyHave) {
  const model::Graph graph = six_buckets();
  const Schedule schedule =
      lower_verified(graph, plan::make_plan(graph, "data", 2), 1, {.machines = plan::Machines({2})});

  ASSERT_EQ(schedule.buckets.size(), 6U);
  for (std::size_t b = 0; b < 6; ++b) {
    const Bucket& bucket = schedule.buckets[b];
    const Buffer& gradient = schedule.buffers[static_cast<std::size_t>(bucket.gradient)];
    const int read = b < 4 ? finish_of(schedule, schedule.buckets[b + 2].name + ".reduce")
                           : finish_of(schedule, bucket.name + ".spread");
    EXPECT_GE(gradient.last_step, read) << bucket.name;
    EXPECT_TRUE(b >= 4 || gradient.last_step == read) << bucket.name << " stays longer than needed";
    EXPECT_TRUE(gradient.shared);
  }
  EXPECT_EQ(transports(schedule, ".reduce"), (std::set{Transport::in_place}));
  EXPECT_EQ(transports(schedule, ".spread"), (std::set{Transport::common}));
  EXPECT_EQ(sent(schedule, Kind::gradient).bytes, 0);
  EXPECT_EQ(sent(schedule, Kind::weights).bytes, 0);
  EXPECT_EQ(sent(schedule, Kind::gradient).announced_bytes, sent(schedule, Kind::weights).announced_bytes);
}

TEST(Lower, OnlyRanksOfOneMachineReadEachOthersGradients) {
  const model::Graph graph = six_buckets(4);
  const Schedule schedule =
      lower_verified(graph, plan::make_plan(graph, "data", 4), 1, {.machines = plan::Machines({2, 2})});

  for (const Exchange& exchange : schedule.exchanges) {
    for_each_message(exchange, [&](const Message& message, bool /*is_receive*/) {
      const bool stays = exchange.kind == Kind::gradient && message.peer == 0;
      const bool common = exchange.kind == Kind::weights && message.peer == 0;
      EXPECT_EQ(message.transport, stays    ? Transport::in_place
                                   : common ? Transport::common
                                            : Transport::moved)
          << exchange.name;
      // Between machines only ranks of the same place exchange something of buckets.
      const bool bucket = exchange.kind == Kind::gradient || exchange.kind == Kind::weights;
      EXPECT_TRUE(!bucket || message.peer == 0 || message.peer == 3) << exchange.name << ": rank " << message.peer;
    });
  }
  for (const Bucket& bucket : schedule.buckets) EXPECT_EQ(bucket.common, (std::vector{0, 1}));
}

TEST(Lower, SmallGradientsMoveAndWeightsAreStillCommon) {
  GraphBuilder builder("net", 3, {.n = 2, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("conv", conv3(4));
  const model::Graph graph = builder.finish(mse);
  const Schedule schedule =
      lower_verified(graph, plan::make_plan(graph, "data", 2), 0, {.machines = plan::Machines({2})});

  EXPECT_EQ(transports(schedule, ".reduce"), (std::set{Transport::moved}));
  EXPECT_EQ(transports(schedule, ".spread"), (std::set{Transport::common}));
}

// Ranks that have other buckets, too, may be anywhere else when a gradient comes.
TEST(Lower, GradientsOfShardsAreNotReadInPlace) {
  const model::Graph graph = six_buckets();
  const Schedule schedule =
      lower_verified(graph, plan::make_plan(graph, "data+filter", 4), 1, {.machines = plan::Machines({4})});

  EXPECT_TRUE(std::any_of(schedule.exchanges.begin(), schedule.exchanges.end(),
                          [](const Exchange& exchange) { return exchange.kind == Kind::gradient; }));
  EXPECT_EQ(transports(schedule, ".reduce"), (std::set{Transport::moved}));
}

/// Kernels that want the weights of convolutions in a form of their own, which depends on the number of samples.
const KernelNeeds wants_prepared_weights{.scratch_bytes = {}, .prepared_weights = [](const model::ConvTask& conv) {
                                           return PreparedWeights{.bytes = 64,
                                                                  .form = std::to_string(conv.src.extents.n)};
                                         }};

TEST(Lower, WeightsArePreparedOnceForAllMicroBatchesOfAForm) {
  GraphBuilder builder("net", 3, {.n = 5, .c = 2, .d = 4, .h = 4, .w = 4});
  builder.add("conv1", conv3(2));
  builder.add("conv2", conv3(2));
  const model::Graph graph = builder.finish(mse);
  plan::Plan plan = plan::serial_plan(graph);
  plan.micro_batches = 3;  // of 2, 2 and 1 samples
  plan.nodes[2].kernels.forward.prepare_weights = true;
  plan.nodes[2].kernels.backward_weights.prepare_weights = true;  // there are none to prepare
  const Schedule schedule = lower_verified(graph, plan, 0, {.needs = wants_prepared_weights});

  std::vector<int> prepared;
  for (const Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    if (!task || !step.name.starts_with("conv")) continue;
    if (std::holds_alternative<model::PrepareWeightsTask>(*task)) {
      EXPECT_EQ(step.name, "conv2.prepare_weights");
      prepared.push_back(step.arguments[model::at::prepare_weights::prepared]);
    } else if (const auto* conv = std::get_if<model::ConvTask>(task)) {
      EXPECT_EQ(conv->prepared_bytes, step.name == "conv2.forward" ? 64 : 0) << step.name;
      if (step.name == "conv2.forward") {
        EXPECT_EQ(step.arguments[model::at::conv_forward::weights], prepared[conv->src.extents.n == 2 ? 0 : 1]);
      }
    }
  }
  EXPECT_EQ(prepared.size(), 2U);
}

/// A pooling of three cells reads one of the rank before it: that rank goes on when it has sent it, the other one when
/// it has pooled what it has itself.
TEST(Lower, PoolingDoesNotWaitForCellsOfOthers) {
  GraphBuilder builder = start();
  builder.add("conv", conv3(4));
  builder.add("pool", model::Pool{.kind = model::PoolKind::average,
                                  .window = {.size = tensor::cube(3),
                                             .stride = tensor::cube(2),
                                             .pad_lo = tensor::cube(1),
                                             .pad_hi = tensor::cube(1)}});
  builder.add("conv2", conv3(4));
  const model::Graph graph = builder.finish(mse);
  const plan::Plan plan = plan::make_plan(graph, plan::CompactGrid{.d = 2});
  const auto until_conv2 = [&](int rank) {
    const std::string all = to_text(lower_verified(graph, plan, rank, {}));
    return all.substr(0, all.find("conv2"));
  };

  EXPECT_EQ(until_conv2(0),
            "conv.forward conv(input, conv.weight, -, conv)\n"
            "conv.halo.start start(conv)\n"
            "pool.forward pool(conv, pool, -)\n"
            "pool.halo.start start(pool)\n"
            "pool.halo.finish finish(pool)\n"
            "conv.halo.finish finish(conv)\n");
  EXPECT_EQ(until_conv2(1),
            "conv.forward conv(input, conv.weight, -, conv)\n"
            "conv.halo.start start(conv)\n"
            "pool.forward pool(conv, pool, -)\n"
            "conv.halo.finish finish(conv)\n"
            "pool.forward_edge pool(conv, pool, -)\n"
            "pool.halo.start start(pool)\n"
            "pool.halo.finish finish(pool)\n");
}

/// Where channels of others are missing, too, no cell can be pooled before they come.
TEST(Lower, PoolingWaitsForChannelsOfOthers) {
  GraphBuilder builder = start();
  const int source = builder.add("conv", conv3(4));
  const int pool = builder.add("pool", model::Pool{.kind = model::PoolKind::average,
                                                   .window = {.size = tensor::cube(3),
                                                              .stride = tensor::cube(2),
                                                              .pad_lo = tensor::cube(1),
                                                              .pad_hi = tensor::cube(1)}});
  const model::Graph graph = builder.finish(mse);
  plan::Plan plan = plan::make_plan(graph, plan::CompactGrid{.f = 2, .d = 2});
  ASSERT_EQ(plan.nodes[static_cast<std::size_t>(source)].grid.c, 2);
  plan.nodes[static_cast<std::size_t>(pool)].grid = {.n = 1, .c = 1, .d = 2, .h = 1, .w = 1};
  for (const int rank : {0, 1}) {
    const std::string all = to_text(lower_verified(graph, plan, rank, {}));
    EXPECT_LT(all.find("conv.for.pool.finish"), all.find("pool.forward ")) << all;
    EXPECT_EQ(all.find("pool.forward_edge"), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace orthant::schedule
