#include "orthant/schedule/schedule.hpp"

#include "tests/schedule/verified.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ostream>
#include <string>

namespace orthant::schedule {

/// For the messages of failed expectations.
inline void PrintTo(const Volume& volume, std::ostream* out) {
  *out << volume.bytes << " bytes (" << volume.announced_bytes << " announced) in " << volume.messages << " messages";
}

namespace {

using model::Conv;
using model::GraphBuilder;
using tensor::Grid;
using tensor::Shape;

constexpr std::int64_t float_bytes = 4;
constexpr std::int64_t double_bytes = 8;
const model::Loss mse{.terms = {{}}};

Conv conv(std::int64_t filters, std::int64_t taps, std::int64_t stride = 1) {
  return {.filters = filters,
          .window = {.size = tensor::cube(taps),
                     .stride = tensor::cube(stride),
                     .pad_lo = tensor::cube(taps / 2),
                     .pad_hi = tensor::cube(taps / 2)},
          .bias = false};
}

/// A convolution between two ops that move nothing: what it reads is no Input, whose loader brings what others own.
model::Graph one_convolution(const Shape& src, const Conv& op) {
  GraphBuilder builder("one", 3, src);
  builder.add("before", model::Scale{.factor = 2});
  builder.add("conv", op);
  builder.add("after", model::Scale{.factor = 2});
  return builder.finish(mse);
}

/// Every node cut alike; sums over src channels in `channel_parts`.
plan::Plan cut_alike(const model::Graph& graph, const Grid& grid, int channel_parts = 1) {
  plan::Plan plan{.ranks = tensor::parts(grid), .nodes = {}};
  for (const model::Node& node : graph.nodes) {
    plan.nodes.push_back({.node = node.name, .grid = grid});
    if (std::holds_alternative<Conv>(node.op)) plan.nodes.back().channel_parts = channel_parts;
  }
  return plan;
}

Volume operator+(const Volume& a, const Volume& b) { return {a.messages + b.messages, a.bytes + b.bytes}; }

/// What the layers of a network send to each other. The loss, which wants all channels of a pixel, does not count.
Volume between_layers(Schedule schedule) {
  std::erase_if(schedule.exchanges, [](const Exchange& exchange) { return exchange.name.starts_with("output."); });
  return sent(schedule, Kind::halo) + sent(schedule, Kind::gather) + sent(schedule, Kind::redistribution);
}

std::int64_t items(const Shape& shape) { return shape.n * shape.c * shape.d * shape.h * shape.w; }

/// p = pc * pf ranks; pf = 1 is stationary-x, pc = 1 stationary-y, others are stationary-w.
struct ChannelGrid {
  int pc, pf;
};
constexpr ChannelGrid channel_grids[]{{2, 1}, {4, 1}, {6, 1}, {8, 1}, {9, 1}, {1, 2}, {1, 4}, {1, 6},
                                      {1, 8}, {1, 9}, {2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}, {3, 3}};

class Stationary : public testing::TestWithParam<ChannelGrid> {
 protected:
  [[nodiscard]] int ranks() const { return GetParam().pc * GetParam().pf; }
  [[nodiscard]] plan::Plan plan() const { return cut_alike(graph_, {.c = ranks()}, GetParam().pc); }
  /// Bytes that one rank sends where (pf-1) ranks want its part of src and (pc-1) its part of dst, so many times.
  [[nodiscard]] std::int64_t bytes(int src_times, int dst_times) const {
    return (src_times * (GetParam().pf - 1) * a_ + dst_times * (GetParam().pc - 1) * b_) / ranks() * float_bytes;
  }
  [[nodiscard]] int messages(int src_times, int dst_times) const {
    return src_times * messages_within(GetParam().pf) + dst_times * messages_within(GetParam().pc);
  }
  /// Up to eight ranks send straight to each other; larger groups gather and scatter in ceil(log2 p) rounds, which send
  /// the same bytes.
  [[nodiscard]] static int messages_within(int p) {
    return p <= 8 ? p - 1 : std::bit_width(static_cast<unsigned>(p - 1));
  }

  /// 72 and 144 can be cut into 2, 4, 6, 8 and 9 equal parts.
  const Shape src_{.n = 2, .c = 72, .d = 4, .h = 4, .w = 4};
  const model::Graph graph_ = one_convolution(src_, conv(144, 3, 2));
  const std::int64_t a_ = items(src_);
  const std::int64_t b_ = items(graph_.nodes[2].shape);
};

/// V_W = 2 [(pf-1) a + (pc-1) b] / p, which is V_X = 2 (p-1)/p b with pf = 1 and V_Y = 2 (p-1)/p a with pc = 1
/// (Dryden et al., SC'19).
TEST_P(Stationary, StepSendsWhatTheFormulaSays) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const Schedule schedule = lower_verified(graph_, plan(), rank, {.input_gradient = true});
    EXPECT_EQ(between_layers(schedule), (Volume{messages(2, 2), bytes(2, 2)})) << "rank " << rank;
  }
}

TEST_P(Stationary, ForwardSendsHalfOfIt) {
  const Schedule schedule = lower_verified(graph_, plan(), 0, {.mode = Mode::evaluate});
  EXPECT_EQ(between_layers(schedule), (Volume{messages(1, 1), bytes(1, 1)}));
}

/// Without backward-data nobody returns the gradient of src.
TEST_P(Stationary, WithoutBackwardDataTheSourceTravelsOnce) {
  const Schedule schedule = lower_verified(graph_, plan(), 0, {});
  EXPECT_EQ(between_layers(schedule), (Volume{messages(1, 2), bytes(1, 2)}));
}

INSTANTIATE_TEST_SUITE_P(Grids, Stationary, testing::ValuesIn(channel_grids), [](const auto& grid) {
  return "pc" + std::to_string(grid.param.pc) + "pf" + std::to_string(grid.param.pf);
});

TEST(HaloVolume, CutInDepthSendsRadiusTimesFaceToEachNeighbour) {
  const Shape src{.n = 2, .c = 3, .d = 24, .h = 6, .w = 5};
  const std::int64_t face = src.n * src.c * src.h * src.w * float_bytes;
  for (const std::int64_t radius : {1, 2, 3}) {
    const model::Graph graph = one_convolution(src, conv(7, 2 * radius + 1));
    for (const int parts : {2, 3, 4, 8}) {
      for (int rank = 0; rank < parts; ++rank) {
        const int neighbours = (rank > 0 ? 1 : 0) + (rank < parts - 1 ? 1 : 0);
        const Schedule forward = lower_verified(graph, cut_alike(graph, {.d = parts}), rank, {.mode = Mode::evaluate});
        EXPECT_EQ(between_layers(forward), (Volume{neighbours, neighbours * radius * face})) << parts << ' ' << rank;
        // The halo of the gradient goes back to its owners: the same cells, whatever the number of filters.
        const Schedule step = lower_verified(graph, cut_alike(graph, {.d = parts}), rank, {.input_gradient = true});
        EXPECT_EQ(sent(step, Kind::halo), (Volume{2 * neighbours, 2 * neighbours * radius * face}));
        EXPECT_EQ(between_layers(step), sent(step, Kind::halo));
      }
    }
  }
}

TEST(HaloVolume, CutInThreeDimsSendsFacesEdgesAndCornersAtOnce) {
  const Shape src{.n = 1, .c = 3, .d = 12, .h = 12, .w = 12};
  for (const std::int64_t radius : {1, 2}) {
    const model::Graph graph = one_convolution(src, conv(4, 2 * radius + 1));
    const Schedule middle =
        lower_verified(graph, cut_alike(graph, {.d = 3, .h = 3, .w = 3}), 13, {.mode = Mode::evaluate});
    const std::int64_t wide = 4 + 2 * radius;
    EXPECT_EQ(sent(middle, Kind::halo), (Volume{26, (wide * wide * wide - 64) * src.c * float_bytes}));

    const Schedule corner =
        lower_verified(graph, cut_alike(graph, {.d = 3, .h = 3, .w = 3}), 0, {.mode = Mode::evaluate});
    const std::int64_t one_sided = 4 + radius;
    EXPECT_EQ(sent(corner, Kind::halo), (Volume{7, (one_sided * one_sided * one_sided - 64) * src.c * float_bytes}));
  }
}

/// With stride 2 and three taps a block looks at one cell below its own and at none above.
TEST(HaloVolume, StrideTwoMovesOneSideOnly) {
  const Shape src{.n = 1, .c = 3, .d = 16, .h = 4, .w = 4};
  const model::Graph graph = one_convolution(src, conv(4, 3, 2));
  const std::int64_t face = src.c * src.h * src.w * float_bytes;
  for (int rank = 0; rank < 4; ++rank) {
    const Schedule schedule = lower_verified(graph, cut_alike(graph, {.d = 4}), rank, {.mode = Mode::evaluate});
    EXPECT_EQ(sent(schedule, Kind::halo), (rank < 3 ? Volume{1, face} : Volume{})) << rank;
  }
}

TEST(HaloVolume, BlocksThinnerThanTheHaloReachPastTheNeighbour) {
  const Shape src{.n = 1, .c = 2, .d = 8, .h = 4, .w = 4};
  const model::Graph graph = one_convolution(src, conv(2, 7));
  const Schedule schedule = lower_verified(graph, cut_alike(graph, {.d = 4}), 0, {.mode = Mode::evaluate});
  // Both planes to the next rank, the upper one to the one after it: radius 3 in all.
  EXPECT_EQ(sent(schedule, Kind::halo), (Volume{2, 3 * src.c * src.h * src.w * float_bytes}));
}

TEST(HaloVolume, FirstLayerGetsItsHaloFromTheLoader) {
  GraphBuilder builder("first", 3, {.n = 1, .c = 2, .d = 8, .h = 4, .w = 4});
  builder.add("conv", conv(4, 3));
  const model::Graph graph = builder.finish(mse);
  for (int rank = 0; rank < 4; ++rank) {
    const Schedule schedule = lower_verified(graph, cut_alike(graph, {.d = 4}), rank, {});
    EXPECT_EQ(between_layers(schedule), Volume{}) << rank;
    const tensor::Box& box = schedule.inputs.front().box;
    EXPECT_EQ(box.hi.d - box.lo.d, rank == 0 || rank == 3 ? 3 : 4) << rank;
  }
}

/// Gradients and weights of f_p x n_q, where |w| is cut into p shards with q holders each.
struct ShardCase {
  int p, q, channel_parts;
};
constexpr ShardCase shard_cases[]{{1, 2, 1}, {1, 4, 1}, {1, 8, 1}, {2, 2, 1}, {2, 4, 1}, {4, 2, 1},
                                  {2, 3, 1}, {3, 2, 1}, {2, 2, 2}, {4, 2, 4}, {4, 2, 2}, {8, 1, 1}};

class Segmented : public testing::TestWithParam<ShardCase> {
 protected:
  [[nodiscard]] Schedule lowered(int p, int q, int channel_parts, const LowerOptions& options) const {
    return lower_verified(graph_, cut_alike(graph_, {.n = q, .c = p}, channel_parts), 0, options);
  }
  const model::Graph graph_ = one_convolution({.n = 24, .c = 48, .d = 2, .h = 2, .w = 2}, conv(96, 3));
  const std::int64_t weights_ = model::parameter_count(graph_);
};

/// Reduce-scatter and spread among the q holders move (q-1)/q of the shard each; in larger groups with fewer messages.
TEST_P(Segmented, GradientsAndWeightsMoveAmongHoldersOnly) {
  const auto [p, q, channel_parts] = GetParam();
  const std::int64_t bytes = (q - 1) * weights_ / q / p * float_bytes;
  const int messages = q == 8 ? 3 : q - 1;

  const Schedule trained = lowered(p, q, channel_parts, {});
  EXPECT_EQ(sent(trained, Kind::gradient), (Volume{messages, bytes}));
  EXPECT_EQ(sent(trained, Kind::weights), (Volume{messages, bytes}));

  const Schedule compared = lowered(p, q, channel_parts, {.update = false});
  EXPECT_EQ(sent(compared, Kind::gradient), (Volume{2 * messages, 2 * bytes}));
  EXPECT_EQ(sent(compared, Kind::weights), Volume{});
}

/// Plain n_(pq) moves 2 (pq-1)/(pq) |w|; segmented 1/p of it times the quotient of the rings' factors.
TEST_P(Segmented, BytesAreOneOverPOfThePlainOnesButForTheRingFactor) {
  const auto [p, q, channel_parts] = GetParam();
  const Schedule segmented = lowered(p, q, channel_parts, {});
  const Schedule plain = lowered(1, p * q, 1, {});
  const std::int64_t all = sent(segmented, Kind::gradient).bytes + sent(segmented, Kind::weights).bytes;
  const std::int64_t plain_all = sent(plain, Kind::gradient).bytes + sent(plain, Kind::weights).bytes;
  // all = plain_all / p * ((q-1)/q) / ((pq-1)/(pq)), without fractions.
  EXPECT_EQ(all * (p * q - 1), plain_all * (q - 1));
}

TEST_P(Segmented, OptimizerStateIsKeptOncePerGroup) {
  const auto [p, q, channel_parts] = GetParam();
  const model::Optimizer adam{.kind = model::OptimizerKind::adam};
  const Schedule schedule = lowered(p, q, channel_parts, {.optimizer = adam});
  ASSERT_EQ(schedule.buckets.size(), 1U);
  ASSERT_EQ(schedule.buckets.front().state.size(), 2U);
  for (const int state : schedule.buckets.front().state)
    EXPECT_EQ(schedule.buffers[static_cast<std::size_t>(state)].bytes, weights_ / (p * q) * float_bytes);
}

INSTANTIATE_TEST_SUITE_P(Grids, Segmented, testing::ValuesIn(shard_cases), [](const auto& grid) {
  return "f" + std::to_string(grid.param.p) + "n" + std::to_string(grid.param.q) + "parts" +
         std::to_string(grid.param.channel_parts);
});

/// Two doubles per channel to each other rank, forward and backward.
TEST(StatisticsVolume, OneMessageToEachRankOfTheGroupPerPass) {
  GraphBuilder builder("norm", 3, {.n = 4, .c = 6, .d = 8, .h = 4, .w = 4});
  builder.add("conv", conv(8, 3));
  builder.add("bn", model::BatchNorm{});
  const model::Graph graph = builder.finish(mse);
  const auto statistics = [&](plan::Statistics kind) {
    plan::Plan plan = cut_alike(graph, {.n = 2, .d = 4});
    for (plan::NodePlan& node : plan.nodes) node.statistics = kind;
    return sent(lower_verified(graph, plan, 0, {}), Kind::statistics);
  };
  EXPECT_EQ(statistics(plan::Statistics::global), (Volume{2 * 7, 2 * 7 * 2 * 8 * double_bytes}));
  EXPECT_EQ(statistics(plan::Statistics::spatial), (Volume{2 * 3, 2 * 3 * 2 * 8 * double_bytes}));
  EXPECT_EQ(statistics(plan::Statistics::local), Volume{});
}

/// The tensor on the border goes forward, its gradient back, in as many messages as there are micro-batches.
TEST(PipelineVolume, BorderTravelsOncePerPass) {
  GraphBuilder builder("stages", 3, {.n = 8, .c = 2, .d = 4, .h = 4, .w = 4});
  const int border = builder.add("conv1", conv(6, 3));
  builder.add("conv2", conv(3, 3));
  const std::int64_t bytes = items(builder.shape(border)) * float_bytes;
  const model::Graph graph = builder.finish(mse);
  plan::Plan plan = cut_alike(graph, {});
  plan.ranks = 2;
  plan.micro_batches = 4;
  plan.nodes.back().first_rank = 1;
  plan.nodes.back().stage = 1;
  for (const int rank : {0, 1}) {
    const Schedule schedule = lower_verified(graph, plan, rank, {});
    EXPECT_EQ(between_layers(schedule), (Volume{4, bytes})) << rank;
    EXPECT_EQ(sent(schedule, Kind::gradient), Volume{});
  }
}

}  // namespace
}  // namespace orthant::schedule
