#include "orthant/base/format.hpp"
#include "orthant/kernels/conv.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>

namespace orthant::test {
namespace {

using model::ConvTask;
using model::Pass;
using tensor::Dim;
using tensor::Extent3;
using tensor::Window;

struct Problem {
  std::int64_t n = 1, in = 1, out = 1;
  Extent3 extents = tensor::cube(1);
  Window window{};
  std::int64_t groups = 1;
};

const Window three{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};

enum class Order { channels_last, channels_first, room };

tensor::Layout layout_of(Order order, const tensor::Shape& shape) {
  switch (order) {
    case Order::channels_last: return tensor::channels_last(shape);
    case Order::channels_first: return tensor::channels_first(shape);
    case Order::room: return layout_with(Room::both, shape);
  }
  return {};
}

ConvTask task_of(const Problem& problem, Pass pass, Order order) {
  const Extent3 dst = tensor::window_output(problem.window, problem.extents);
  const tensor::Shape src_shape{problem.n, problem.in, problem.extents.d, problem.extents.h, problem.extents.w};
  const tensor::Shape dst_shape{problem.n, problem.out, dst.d, dst.h, dst.w};
  return {.pass = pass,
          .window = problem.window,
          .groups = problem.groups,
          .bias = pass != Pass::backward_data,
          .activation = {},
          .src = layout_of(order, src_shape),
          .dst = layout_of(order, dst_shape)};
}

std::string text_of(const Problem& problem) {
  const auto triple = [](const Extent3& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  const Window& window = problem.window;
  return fmt::format("n{} c{} f{} g{} i{} k{} s{} d{} p{}/{}", problem.n, problem.in, problem.out, problem.groups,
                     triple(problem.extents), triple(window.size), triple(window.stride), triple(window.dilation),
                     triple(window.pad_lo), triple(window.pad_hi));
}

void expect_right(const ConvTask& task, const std::string& text) {
  const Make direct = [&task](int threads) {
    std::vector<std::unique_ptr<kernels::Primitive>> all;
    all.push_back(kernels::direct::make_conv(task, threads));
    return all;
  };
  EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}, direct), "")
      << text << " pass " << static_cast<int>(task.pass) << ' ' << model::name_of(task.activation.kind);
}

void expect_all_passes_right(const Problem& problem, Order order) {
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
    expect_right(task_of(problem, pass, order), text_of(problem));
  }
}

/// Small sizes that meet every edge: windows larger than the source, strides larger than the window, empty phases.
Problem random_problem(Random& random) {
  const auto pick = [&random](int lo, int hi) { return static_cast<std::int64_t>(random.integer(lo, hi)); };
  Problem problem{.n = pick(1, 2), .in = pick(1, 9), .out = pick(1, 35), .groups = pick(1, 4) == 4 ? pick(2, 3) : 1};
  problem.in *= problem.groups;
  problem.out *= problem.groups;
  for (const Dim dim : tensor::spatial_dims) {
    problem.window.size[dim] = pick(1, 4);
    problem.window.stride[dim] = pick(1, 3);
    problem.window.dilation[dim] = pick(1, 2);
    problem.window.pad_lo[dim] = pick(0, 3);
    problem.window.pad_hi[dim] = pick(0, 3);
    const std::int64_t padding = problem.window.pad_lo[dim] + problem.window.pad_hi[dim];
    const std::int64_t least = std::max<std::int64_t>(tensor::reach(problem.window, dim) - padding, 1);
    problem.extents[dim] = least + pick(0, dim == Dim::w ? 9 : 3);
  }
  return problem;
}

TEST(DirectConv, IsRightOnRandomShapes) {
  Random random(1);
  for (int count = 0; count < 150; ++count) {
    expect_all_passes_right(random_problem(random), Order::channels_last);
  }
}

TEST(DirectConv, IsRightOnChannelsFirst) {
  Random random(2);
  for (int count = 0; count < 30; ++count) {
    expect_all_passes_right(random_problem(random), Order::channels_first);
  }
}

TEST(DirectConv, IsRightInsideLargerBuffers) {
  Random random(3);
  for (int count = 0; count < 30; ++count) expect_all_passes_right(random_problem(random), Order::room);
}

TEST(DirectConv, IsRightOnFirstLayers) {
  const Window seven{.size = tensor::square(7), .stride = tensor::square(2), .pad_lo = {0, 3, 3}, .pad_hi = {0, 3, 3}};
  const Window eleven{
      .size = tensor::square(11), .stride = tensor::square(4), .pad_lo = {0, 2, 2}, .pad_hi = {0, 2, 2}};
  expect_all_passes_right({.in = 4, .out = 16, .extents = {5, 7, 61}, .window = three}, Order::channels_last);
  expect_all_passes_right({.in = 4, .out = 32, .extents = {3, 5, 33}, .window = three}, Order::channels_last);
  expect_all_passes_right({.in = 1, .out = 32, .extents = {4, 6, 29}, .window = three}, Order::channels_last);
  expect_all_passes_right({.n = 2, .in = 3, .out = 64, .extents = {1, 19, 45}, .window = seven}, Order::channels_last);
  expect_all_passes_right({.in = 3, .out = 64, .extents = {1, 27, 63}, .window = eleven}, Order::channels_last);
}

TEST(DirectConv, IsRightWhereBlocksAreCut) {
  const Window two{.size = tensor::cube(2), .stride = tensor::cube(2)};
  expect_all_passes_right({.in = 150, .out = 40, .extents = {2, 3, 9}, .window = three}, Order::channels_last);
  expect_all_passes_right({.in = 2, .out = 5, .extents = {2, 3, 1100}, .window = three}, Order::channels_last);
  expect_all_passes_right({.in = 20, .out = 17, .extents = {3, 9, 600}, .window = {}}, Order::channels_last);
  expect_all_passes_right({.in = 48, .out = 130, .extents = {4, 6, 6}, .window = two}, Order::channels_last);
  expect_all_passes_right({.in = 70, .out = 66, .extents = {2, 40, 40}, .window = two}, Order::room);
}

/// Results too large for the cache are written around it, in a box too.
TEST(DirectConv, IsRightWhereResultsAreStreamed) {
  const tensor::Shape large{.n = 1, .c = 64, .d = 17, .h = 63, .w = 64};
  const tensor::Shape small{.n = 1, .c = 1, .d = 17, .h = 63, .w = 64};
  expect_right({.bias = true, .src = layout_with(Room::none, small), .dst = layout_with(Room::halo, large)}, "halo");
  expect_right(
      {.pass = Pass::backward_data, .src = layout_with(Room::halo, large), .dst = layout_with(Room::none, small)},
      "halo");
}

TEST(DirectConv, AppliesEveryActivation) {
  for (const model::ActivationKind kind : {model::ActivationKind::relu, model::ActivationKind::leaky_relu,
                                           model::ActivationKind::tanh, model::ActivationKind::sigmoid}) {
    for (const Order order : {Order::channels_last, Order::channels_first}) {
      const Problem problem{.in = 3, .out = 21, .extents = {3, 4, 17}, .window = three};
      ConvTask task = task_of(problem, Pass::forward, order);
      task.activation = {.kind = kind, .slope = 0.25};
      expect_right(task, text_of(problem));
    }
  }
}

TEST(DirectConv, IsRightOnEveryInstructionSet) {
  const auto supported = hwy::SupportedTargets();
  std::string names;
  for (auto targets = supported; targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
    const Problem problem{.in = 4, .out = 19, .extents = {2, 5, 31}, .window = three};
    names += kernels::direct::make_conv(task_of(problem, Pass::forward, Order::channels_last), 1)->name() + ' ';
    expect_all_passes_right(problem, Order::channels_last);
    Random random(4);
    for (int count = 0; count < 20; ++count) {
      expect_all_passes_right(random_problem(random), Order::channels_last);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();

  EXPECT_NE(names.find(":scalar:"), std::string::npos) << names;
}

}  // namespace
}  // namespace orthant::test
