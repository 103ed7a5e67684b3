#include "orthant/model/arguments.hpp"

#include "tests/support/arguments.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orthant::model {
namespace {

using tensor::channels_last;
using tensor::Layout;
using test::layout_with;
using test::Room;

const Layout large = layout_with(Room::both, {2, 8, 6, 6, 6});
const Layout small = layout_with(Room::halo, {2, 8, 3, 3, 3});
const Layout dense = channels_last({2, 8, 6, 6, 6});
constexpr Activation relu{.kind = ActivationKind::relu};
constexpr tensor::Window halving{.size = tensor::cube(2), .stride = tensor::cube(2)};
constexpr Pass forward = Pass::forward, backward_data = Pass::backward_data, backward_weights = Pass::backward_weights;

/// Every task in every pass, with layouts that differ and with and without what may be left out.
std::vector<Task> all_tasks() {
  const Layout row = channels_last({.n = 3, .c = 5}), other_row = channels_last({.n = 3, .c = 7});
  const Loss values{.terms = {{}, {.kind = LossKind::mean_absolute_error}}};
  const Loss labels{.terms = {{.kind = LossKind::cross_entropy}, {.kind = LossKind::soft_dice}}};
  std::vector<Task> tasks;
  for (const Pass pass : {forward, backward_data, backward_weights}) {
    for (const bool flag : {false, true}) {
      tasks.emplace_back(ConvTask{.pass = pass,
                                  .window = halving,
                                  .groups = flag ? 2 : 1,
                                  .bias = flag,
                                  .accumulate = flag,
                                  .src = large,
                                  .dst = small});
      const ConvTask prepared{
          .pass = pass, .window = halving, .src = large, .dst = small, .prepared_bytes = flag ? 4096 : 0};
      if (pass != backward_weights) tasks.emplace_back(prepared);
      if (pass != backward_weights && flag) tasks.emplace_back(PrepareWeightsTask{prepared});
      tasks.emplace_back(DenseTask{.pass = pass, .bias = flag, .accumulate = flag, .src = row, .dst = other_row});
    }
  }
  for (const Pass pass : {forward, backward_data}) {
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      tasks.emplace_back(PoolTask{.pass = pass, .kind = kind, .window = halving, .src = large, .dst = small});
      tasks.emplace_back(PoolTask{.pass = pass,
                                  .kind = kind,
                                  .window = {.size = {1, 30, 30}},
                                  .activation = relu,
                                  .src = channels_last({1, 2, 1, 30, 30}),
                                  .dst = channels_last({1, 2, 1, 1, 1})});
    }
    tasks.emplace_back(PoolTask{.pass = pass, .window = halving, .accumulate = true, .src = large, .dst = small});
    tasks.emplace_back(NormSumsTask{.pass = pass, .activation = relu, .x = large, .y = dense});
    tasks.emplace_back(NormSumsTask{
        .pass = pass, .accumulate = true, .x = large, .y = dense, .diff_y2 = large, .diff_residual = large});
    tasks.emplace_back(NormTask{.pass = pass, .activation = relu, .x = large, .y = dense});
    tasks.emplace_back(
        NormTask{.pass = pass, .residual = true, .x = large, .y = dense, .diff_y = large, .residual_layout = large});
    tasks.emplace_back(ActivationTask{.pass = pass, .src = large, .dst = dense, .second = dense});
    tasks.emplace_back(SoftmaxTask{.pass = pass, .src = large, .dst = dense});
    const Layout peaks = channels_last({2, 8, 1, 1, peak_numbers}),
                 parts = channels_last({2, 8, 2, 1, 2 * peak_numbers});
    tasks.emplace_back(PeaksTask{.pass = pass, .global_src = tensor::cube(6), .src = large, .dst = peaks});
    tasks.emplace_back(
        PeaksTask{.pass = pass, .src = large, .dst = peaks, .diff_dst = layout_with(Room::both, peaks.extents)});
    tasks.emplace_back(HighestPeakTask{.pass = pass, .src = parts, .dst = channels_last({2, 8, 1, 1, 1})});
    tasks.emplace_back(HighestPeakTask{.pass = pass,
                                       .src = parts,
                                       .dst = channels_last({2, 8, 1, 1, 1}),
                                       .diff_src = layout_with(Room::both, parts.extents)});
    const SampleGroups groups{.groups = 4, .channels = 2};
    tasks.emplace_back(NormSumsTask{.pass = pass, .groups = groups, .x = large, .y = dense});
    tasks.emplace_back(NormTask{.pass = pass, .groups = groups, .x = large, .y = dense});
    tasks.emplace_back(PixelNormTask{.pass = pass, .x = large, .y = dense});
    tasks.emplace_back(
        PixelNormTask{.pass = pass, .affine = false, .accumulate = true, .x = large, .y = dense, .diff_x = dense});
    tasks.emplace_back(PReluTask{.pass = pass, .src = large, .dst = dense});
    tasks.emplace_back(
        PReluTask{.pass = pass, .shared = true, .accumulate = true, .src = large, .dst = dense, .diff_src = dense});
  }
  tasks.emplace_back(CopyTask{.src = large, .dst = dense});
  tasks.emplace_back(CopyTask{.accumulate = true, .src = dense, .dst = large});
  tasks.emplace_back(CopyPiecesTask{.pieces = {{large, dense}}});
  tasks.emplace_back(FillTask{.dst = large});
  const Layout gate = channels_last({2, 8, 1, 1, 1});
  tasks.emplace_back(ProductTask{.a = large, .b = gate, .dst = dense});
  tasks.emplace_back(ProductSumsTask{.a = large, .b = dense, .dst = gate});
  tasks.emplace_back(ProductSumsTask{.accumulate = true, .a = large, .b = dense, .dst = gate});
  tasks.emplace_back(RemapTask{.src = large, .dst = small});
  tasks.emplace_back(AddTask{.a = large, .b = dense, .dst = large});
  tasks.emplace_back(DropoutTask{.src = large, .dst = dense});
  tasks.emplace_back(BiasGradientTask{.dst = large});
  tasks.emplace_back(BiasGradientTask{.accumulate = true, .dst = large});
  for (const Loss& loss : {values, labels}) {
    tasks.emplace_back(LossSumsTask{.loss = loss, .output = dense});
    tasks.emplace_back(LossTask{.loss = loss, .global = dense.extents, .output = dense});
  }
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam})
    tasks.emplace_back(UpdateTask{.optimizer = {.kind = kind}, .count = 100, .arrived = 2, .kept = 1});
  return tasks;
}

test::ItemType as_the_judge_says(ItemType type) {
  switch (type) {
    case ItemType::float32: return test::ItemType::float32;
    case ItemType::float64: return test::ItemType::float64;
    case ItemType::int32: return test::ItemType::int32;
    case ItemType::uint8: return test::ItemType::uint8;
    case ItemType::uint16: return test::ItemType::uint16;
  }
  return {};
}

test::Access as_the_judge_says(Access access) {
  switch (access) {
    case Access::none:
    case Access::read: return test::Access::read;
    case Access::write: return test::Access::write;
    case Access::update: return test::Access::update;
  }
  return {};
}

// The kernels' judge has a list of its own.
TEST(Arguments, AreThoseOfTheJudge) {
  std::set<std::size_t> kinds;
  for (const Task& task : all_tasks()) {
    kinds.insert(task.index());
    if (std::holds_alternative<CopyPiecesTask>(task)) continue;  // the judge sees one range of memory in its pieces
    const std::vector<Argument> ours = arguments(task);
    const std::vector<test::Argument> theirs = test::arguments_of(task);
    ASSERT_EQ(ours.size(), theirs.size()) << "task " << task.index();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::string where = "task " + std::to_string(task.index()) + ", " + theirs[i].name;
      EXPECT_EQ(ours[i].position.index, i) << where;
      EXPECT_EQ(ours[i].position.name, theirs[i].name) << where;
      EXPECT_EQ(as_the_judge_says(ours[i].access), theirs[i].access) << where;
      if (ours[i].presence == Presence::null) continue;
      EXPECT_EQ(bytes_of(ours[i].type), test::bytes_of(theirs[i].type)) << where;
      EXPECT_EQ(as_the_judge_says(ours[i].type), theirs[i].type) << where;
      EXPECT_EQ(ours[i].layout, theirs[i].layout) << where;
      EXPECT_EQ(end_of(ours[i].layout), test::end_of(theirs[i].layout)) << where;
    }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Task>) << "a task is missing here";
}

TEST(Arguments, HaveAnEntryForEveryPiece) {
  const tensor::Layout one = channels_last({1, 2, 3, 4, 5});
  tensor::Layout other = one;
  other.offset = 120;
  const CopyPiecesTask task{.accumulate = true, .pieces = {{one, other}, {other, one}}};
  const std::vector<Argument> list = arguments(task);
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(argument_count(task), 2U);
  EXPECT_EQ(list[0].layout, one);
  EXPECT_EQ(list[1].layout, other);
  EXPECT_EQ(list[2].layout, other);
  EXPECT_EQ(list[3].layout, one);
  for (const std::size_t i : {2U, 3U}) EXPECT_EQ(list[i].access, Access::update);
  for (const std::size_t i : {2U, 3U}) EXPECT_EQ(list[i].position.index, at::copy::dst.index);
}

Presence presence(const Task& task, Position position) { return arguments(task).at(position).presence; }

TEST(Arguments, SayWhatMayBeNull) {
  EXPECT_EQ(presence(ConvTask{.bias = true}, at::conv_forward::bias), Presence::required);
  EXPECT_EQ(presence(ConvTask{}, at::conv_forward::bias), Presence::null);
  EXPECT_EQ(presence(PoolTask{}, at::pool_forward::argmax), Presence::optional);
  EXPECT_EQ(presence(PoolTask{.pass = backward_data}, at::pool_backward::argmax), Presence::required);
  EXPECT_EQ(presence(PoolTask{.pass = backward_data}, at::pool_backward::y), Presence::optional);
  EXPECT_EQ(presence(PoolTask{.pass = backward_data, .activation = relu}, at::pool_backward::y), Presence::required);
  EXPECT_EQ(presence(NormTask{.training = false}, at::norm_forward::sums), Presence::optional);
  EXPECT_EQ(presence(NormTask{.residual = true}, at::norm_forward::residual), Presence::required);
  const UpdateTask momentum{.optimizer = {.momentum = 0.9}};
  EXPECT_EQ(presence(momentum, at::update::state0), Presence::required);
  EXPECT_EQ(presence(momentum, at::update::state1), Presence::null);
}

// Cells of src beyond the last window may be anything: they may be on their way from another rank.
TEST(Arguments, WindowsReachOnlyWhatTheirTapsDo) {
  const Layout src = channels_last({1, 4, 8, 8, 8});
  const ConvTask task{.window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1)},
                      .src = src,
                      .dst = channels_last({1, 4, 5, 8, 8})};
  const Argument argument = arguments(task).at(at::conv_forward::src);
  EXPECT_EQ(argument.touched, tensor::box_of(src, {.lo = {0, 0, 0, 0, 0}, .hi = {1, 4, 6, 8, 8}}));
  EXPECT_EQ(argument.items, 4 * 6 * 8 * 8);
}

TEST(BytesMoved, CountEveryItemOnceAndUpdatesTwice) {
  const Layout src = channels_last({1, 4, 8, 8, 8}), dst = channels_last({1, 6, 8, 8, 8});
  ConvTask task{.window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1)}, .bias = true, .src = src, .dst = dst};
  const std::int64_t tensors = (4 + 6) * 512, weights = 27 * 4 * 6, bias = 6;
  EXPECT_EQ(bytes_moved(task), 4 * (tensors + weights + bias));
  task.pass = backward_weights;
  EXPECT_EQ(bytes_moved(task), 4 * (tensors + weights + bias));
  task.accumulate = true;
  EXPECT_EQ(bytes_moved(task), 4 * (tensors + 2 * (weights + bias)));
  task.bias = false;
  EXPECT_EQ(bytes_moved(task), 4 * (tensors + 2 * weights));
}

TEST(BytesMoved, OfAWindowThatIsSmallerThanItsStride) {
  const ConvTask task{.window = {.stride = tensor::cube(2)},
                      .src = channels_last({1, 4, 8, 8, 8}),
                      .dst = channels_last({1, 4, 4, 4, 4})};
  EXPECT_EQ(bytes_moved(task), 4 * (4 * 64 + 4 * 4 + 4 * 64));
}

TEST(BytesMoved, OfTheRest) {
  EXPECT_EQ(bytes_moved(AddTask{.a = large, .b = dense, .dst = dense}), 3 * 4 * 2 * 8 * 216);
  EXPECT_EQ(bytes_moved(CopyTask{.accumulate = true, .src = dense, .dst = large}), 3 * 4 * 2 * 8 * 216);
  EXPECT_EQ(bytes_moved(CopyPiecesTask{.pieces = {{dense, large}, {large, dense}}}), 4 * 4 * 2 * 8 * 216);
  EXPECT_EQ(bytes_moved(UpdateTask{.optimizer = {.momentum = 0.9}, .count = 10, .arrived = 1}),
            4 * (20 + 10 + 20 + 10));
}

}  // namespace
}  // namespace orthant::model
