#include "orthant/base/error.hpp"
#include "tests/kernels/execute.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orthant::test {
namespace {

using model::Pass;
using model::PoolKind;
using model::PoolTask;
using tensor::channels_last;
using tensor::cube;
using tensor::Shape;
using tensor::Window;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

PoolTask task_of(PoolKind kind, const Shape& src, const Window& window, Room room = Room::none) {
  const tensor::Extent3 out = tensor::window_output(window, tensor::spatial(src));
  const Shape dst{.n = src.n, .c = src.c, .d = out.d, .h = out.h, .w = out.w};
  PoolTask task;
  task.kind = kind;
  task.window = window;
  task.src = layout_with(room, src);
  task.dst = layout_with(room, dst);
  return task;
}

struct Maximum {
  float value;
  int tap;
};

/// Max pooling of one window over a line.
Maximum pool_line(std::vector<float> line, const Window& window) {
  const Shape src{.w = static_cast<std::int64_t>(line.size())};
  float value = 0;
  std::uint8_t tap = 0;
  execute(task_of(PoolKind::max, src, window), {line.data(), &value, &tap});
  return {value, tap};
}

/// Windows that overlap in depth, large enough for the ring of summed planes and for several bands and threads.
TEST(Pool, AveragesOverlappingPlanesThroughTheRing) {
  const Window cosmoflow{.size = cube(3), .stride = cube(2), .pad_lo = cube(1), .pad_hi = cube(1)};
  const Window uneven{.size = {4, 2, 3}, .stride = {1, 2, 1}, .pad_lo = {2, 0, 1}, .pad_hi = {1, 1, 0}};
  const Window spread{.size = {3, 2, 2}, .dilation = {1, 3, 2}};
  for (const Window& window : {cosmoflow, uneven, spread}) {
    for (const Shape& src : {Shape{2, 16, 9, 11, 13}, Shape{1, 5, 17, 16, 9}, Shape{1, 70, 8, 6, 7}}) {
      for (const Room room : {Room::none, Room::both}) {
        PoolTask task = task_of(PoolKind::average, src, window, room);
        EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "") << tensor::to_text(src);
        task.count_include_pad = false;
        EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "") << tensor::to_text(src);
      }
    }
  }
}

TEST(Pool, SplitsTheRingIntoBandsWhereRowsAreLong) {
  const Window window{.size = {3, 3, 1}, .stride = {2, 2, 1}, .pad_lo = {1, 1, 0}, .pad_hi = {1, 1, 0}};
  const PoolTask task = task_of(PoolKind::average, {.n = 1, .c = 64, .d = 3, .h = 7, .w = 300}, window);

  EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "");
}

TEST(Pool, AveragesTheWholeExtent) {
  for (const Shape& src : {Shape{1, 3, 16, 17, 18}, Shape{5, 32, 1, 9, 10}, Shape{1, 64, 12, 12, 12}}) {
    const PoolTask task = task_of(PoolKind::average, src, {.size = tensor::spatial(src)});
    const std::vector<float> ones(static_cast<std::size_t>(tensor::volume(src)), 0.1F);
    std::vector<float> means(static_cast<std::size_t>(src.n * src.c));

    execute(task, {const_cast<float*>(ones.data()), means.data(), nullptr});

    for (const float mean : means) EXPECT_NEAR(mean, 0.1F, 1e-7);
    EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "");
  }
}

TEST(Pool, BackwardIsRightOnLargePlanes) {
  const Window window{.size = cube(3), .stride = cube(2), .pad_lo = cube(1), .pad_hi = cube(1)};
  for (const PoolKind kind : {PoolKind::average, PoolKind::max}) {
    PoolTask task = task_of(kind, {.n = 1, .c = 16, .d = 9, .h = 10, .w = 11}, window);
    task.pass = Pass::backward_data;
    task.activation = {.kind = model::ActivationKind::leaky_relu, .slope = 0.25};
    const std::vector<int> nulls = kind == PoolKind::average ? std::vector<int>{1} : std::vector<int>{};
    EXPECT_EQ(check({.task = task, .nulls = nulls, .shared = {{3, 2}}}), "");
  }
}

TEST(Pool, FirstMaximumWins) {
  const Maximum result = pool_line({1, 7, 7, 3}, {.size = {1, 1, 4}});

  EXPECT_EQ(result.value, 7);
  EXPECT_EQ(result.tap, 1);
}

TEST(Pool, PaddingNeverWins) {
  const Window window{.size = {1, 1, 3}, .pad_lo = {0, 0, 1}};

  const Maximum negative = pool_line({-5, -9}, window);
  const Maximum lowest = pool_line({-infinity, -infinity}, window);

  EXPECT_EQ(negative.value, -5);
  EXPECT_EQ(negative.tap, 1);
  EXPECT_EQ(lowest.value, -infinity);
  EXPECT_EQ(lowest.tap, 1);
}

TEST(Pool, NanWinsOverAll) {
  for (const std::size_t place : {0U, 1U, 2U}) {
    std::vector<float> line{1, infinity, 3};
    line[place] = nan;

    const Maximum result = pool_line(line, {.size = {1, 1, 3}});

    EXPECT_TRUE(std::isnan(result.value));
    EXPECT_EQ(result.tap, static_cast<int>(place));
  }
}

TEST(Pool, ArgmaxBeyondABytesRangeIsKept) {
  const Shape src{.h = 20, .w = 20};
  std::vector<float> items(400, 0.0F);
  items[399] = 1;
  float value = 0;
  std::uint16_t tap = 0;

  execute(task_of(PoolKind::max, src, {.size = {1, 20, 20}}), {items.data(), &value, &tap});

  EXPECT_EQ(value, 1);
  EXPECT_EQ(tap, 399);
}

TEST(Pool, RunsWithoutArgmaxInEvaluation) {
  std::vector<float> line{4, 2, 8, 6};
  std::vector<float> dst(2);

  execute(task_of(PoolKind::max, {.w = 4}, {.size = {1, 1, 2}, .stride = {1, 1, 2}}),
          {line.data(), dst.data(), nullptr});

  EXPECT_EQ(dst, (std::vector<float>{4, 8}));
}

/// <pool(x), g> = <x, pool'(g)> for averages, which are linear.
TEST(Pool, BackwardIsTheAdjointOfForward) {
  const Window window{
      .size = {2, 3, 4}, .stride = {1, 2, 3}, .dilation = {2, 1, 1}, .pad_lo = {1, 0, 2}, .pad_hi = {0, 1, 1}};
  PoolTask task = task_of(PoolKind::average, {.n = 2, .c = 3, .d = 5, .h = 7, .w = 9}, window);
  for (const bool include : {true, false}) {
    task.count_include_pad = include;
    std::vector<float> x(static_cast<std::size_t>(tensor::volume(task.src.extents))), back(x.size());
    std::vector<float> g(static_cast<std::size_t>(tensor::volume(task.dst.extents))), dst(g.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i % 7) - 3;
    task.pass = Pass::forward;
    execute(task, {x.data(), dst.data(), nullptr});
    task.pass = Pass::backward_data;
    execute(task, {g.data(), nullptr, nullptr, back.data()});

    double left = 0, right = 0;
    for (std::size_t i = 0; i < g.size(); ++i) left += static_cast<double>(dst[i]) * static_cast<double>(g[i]);
    for (std::size_t i = 0; i < x.size(); ++i) right += static_cast<double>(x[i]) * static_cast<double>(back[i]);
    EXPECT_NEAR(left, right, 1e-3);
  }
}

TEST(Pool, RefusesToAddAndDifferentiateAtOnce) {
  PoolTask task = task_of(PoolKind::average, {.w = 4}, {.size = {1, 1, 2}});
  task.pass = Pass::backward_data;
  task.accumulate = true;
  task.activation = {.kind = model::ActivationKind::relu};

  EXPECT_THROW(kernels::make_primitive(task, 1), base::Error);
}

}  // namespace
}  // namespace orthant::test
