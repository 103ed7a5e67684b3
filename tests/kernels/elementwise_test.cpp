#include "orthant/base/error.hpp"
#include "orthant/kernels/elementwise/dropout.hpp"
#include "tests/kernels/execute.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::Pass;
using tensor::channels_last;
using tensor::Shape;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> activate(ActivationKind kind, std::vector<float> items) {
  model::ActivationTask task{.activation = {.kind = kind}};
  task.src = task.dst = channels_last({.c = static_cast<std::int64_t>(items.size())});
  execute(task, {items.data(), nullptr, items.data()});
  return items;
}

TEST(Activation, KeepsNan) {
  for (const ActivationKind kind : {ActivationKind::identity, ActivationKind::relu, ActivationKind::leaky_relu,
                                    ActivationKind::tanh, ActivationKind::sigmoid}) {
    for (const float item : activate(kind, std::vector<float>(21, std::nanf("")))) EXPECT_TRUE(std::isnan(item));
  }
}

TEST(Activation, StandsExtremes) {
  EXPECT_EQ(activate(ActivationKind::relu, {-infinity, infinity, -0.5F, 2}), (std::vector<float>{0, infinity, 0, 2}));
  const std::vector<float> tanh = activate(ActivationKind::tanh, {-1000, 1000, 0, 1e-6F});
  EXPECT_EQ(tanh[0], -1);
  EXPECT_EQ(tanh[1], 1);
  EXPECT_EQ(tanh[2], 0);
  EXPECT_FLOAT_EQ(tanh[3], 1e-6F);
  const std::vector<float> sigmoid = activate(ActivationKind::sigmoid, {-1000, 1000, 0, -20});
  EXPECT_NEAR(static_cast<double>(sigmoid[0]), 0, 1e-37);
  EXPECT_EQ(sigmoid[1], 1);
  EXPECT_EQ(sigmoid[2], 0.5F);
  EXPECT_FLOAT_EQ(sigmoid[3], static_cast<float>(1 / (1 + std::exp(20.0))));
}

TEST(Activation, RefusesASlopeWhoseDerivativeTheValueHides) {
  model::ActivationTask task{.pass = Pass::backward_data,
                             .activation = {.kind = ActivationKind::leaky_relu, .slope = -0.1}};
  task.src = task.dst = channels_last({.c = 4});

  EXPECT_THROW(kernels::make_primitive(task, 1), base::Error);
}

TEST(Activation, IsRightWhereThreadsAndRowsAreMany) {
  for (const Shape& shape : {Shape{2, 3, 9, 17, 19}, Shape{1, 16, 6, 12, 13}, Shape{1, 100, 5, 5, 7}}) {
    for (const Room room : {Room::none, Room::channels, Room::halo}) {
      model::ActivationTask task{.activation = {.kind = ActivationKind::leaky_relu, .slope = 0.25}};
      task.src = task.dst = task.second = layout_with(room, shape);
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{2, 0}}}), "") << tensor::to_text(shape);
      task.pass = Pass::backward_data;
      EXPECT_EQ(check({.task = task, .nulls = {1}, .shared = {{3, 2}}}), "") << tensor::to_text(shape);
      const model::BiasGradientTask bias{.dst = layout_with(room, shape)};
      EXPECT_EQ(check({.task = bias, .nulls = {}, .shared = {}}), "") << tensor::to_text(shape);
    }
  }
}

TEST(Kernels, RefuseTensorsOfDifferentShapes) {
  const model::AddTask task{.a = channels_last({.c = 4}), .b = channels_last({.c = 5}), .dst = channels_last({.c = 4})};

  EXPECT_THROW(kernels::make_primitive(task, 1), base::Error);
}

TEST(Kernels, DoNothingOnEmptyTensors) {
  const Shape none{.n = 0, .c = 8, .d = 2, .h = 2, .w = 2};
  const tensor::Layout layout = channels_last(none);
  float item = 7;
  execute(model::AddTask{.a = layout, .b = layout, .dst = layout}, {&item, &item, &item});
  execute(model::CopyTask{.src = layout, .dst = tensor::channels_first(none)}, {&item, &item});

  EXPECT_EQ(item, 7);
}

TEST(Copy, FlattensToPyTorchsOrder) {
  const Shape shape{.n = 2, .c = 3, .h = 2, .w = 2};
  std::vector<float> src(24), dst(24);
  std::iota(src.begin(), src.end(), 0.0F);

  execute(model::CopyTask{.src = channels_last(shape), .dst = tensor::channels_first(shape)}, {src.data(), dst.data()});

  EXPECT_EQ(std::vector<float>(dst.begin(), dst.begin() + 6), (std::vector<float>{0, 3, 6, 9, 1, 4}));
  EXPECT_EQ(dst[23], 23);
}

TEST(Copy, IsRightOnLargeTensors) {
  const Shape shape{.n = 2, .c = 37, .d = 5, .h = 9, .w = 11};
  for (const auto& [src, dst] : {std::pair(channels_last(shape), tensor::channels_first(shape)),
                                 std::pair(tensor::channels_first(shape), layout_with(Room::both, shape)),
                                 std::pair(layout_with(Room::channels, shape), channels_last(shape))}) {
    EXPECT_EQ(check({.task = model::CopyTask{.src = src, .dst = dst}, .nulls = {}, .shared = {}}), "");
  }
}

TEST(Softmax, SumsToOneAndStandsLargeNumbers) {
  for (const std::int64_t channels : {1, 3, 16, 17, 1000}) {
    std::vector<float> row(static_cast<std::size_t>(channels));
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = 500.0F * static_cast<float>(i % 3);
    model::SoftmaxTask task;
    task.src = task.dst = channels_last({.c = channels});

    execute(task, {row.data(), row.data()});

    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5) << channels;
  }
}

TEST(Softmax, NanSpoilsItsRowOnly) {
  for (const std::int64_t channels : {3, 20}) {
    std::vector<float> rows(static_cast<std::size_t>(2 * channels), 1.0F);
    rows[1] = std::nanf("");
    model::SoftmaxTask task;
    task.src = task.dst = channels_last({.n = 2, .c = channels});

    execute(task, {rows.data(), rows.data()});

    for (std::int64_t c = 0; c < channels; ++c) EXPECT_TRUE(std::isnan(rows[static_cast<std::size_t>(c)]));
    EXPECT_FLOAT_EQ(rows.back(), 1 / static_cast<float>(channels));
  }
}

TEST(Dropout, KeepsTheShareItShould) {
  const Shape shape{.n = 4, .c = 50, .d = 2, .h = 10, .w = 25};
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    std::vector<float> items(static_cast<std::size_t>(tensor::volume(shape)), 1.0F);
    model::DropoutTask task{.rate = rate, .layer = 3, .global = shape, .box = tensor::whole(shape)};
    task.src = task.dst = channels_last(shape);

    execute(task, {items.data(), items.data()}, 2, {.step = 5, .seed = 11});

    const auto kept = static_cast<double>(std::count_if(items.begin(), items.end(), [](float x) { return x != 0; }));
    EXPECT_NEAR(kept / static_cast<double>(items.size()), 1 - rate, 0.005);
    EXPECT_NEAR(std::accumulate(items.begin(), items.end(), 0.0) / static_cast<double>(items.size()), 1, 0.05);
  }
}

TEST(Dropout, MaskDependsOnSeedStepLayerAndPositionOnly) {
  const Shape shape{.n = 2, .c = 8, .h = 6, .w = 5};
  const model::DropoutTask task{.rate = 0.5, .layer = 3, .global = shape, .box = tensor::whole(shape)};
  const kernels::Context context{.step = 5, .seed = 11};
  const auto mask = [&](const model::DropoutTask& one, const kernels::Context& at) {
    std::vector<bool> kept;
    for (std::int64_t i = 0; i < tensor::volume(shape); ++i) {
      kept.push_back(kernels::elementwise::dropout_keeps(
          one, at, {.n = i / 240, .c = i % 8, .d = 0, .h = i / 40 % 6, .w = i / 8 % 5}));
    }
    return kept;
  };
  model::DropoutTask other = task;
  other.layer = 4;

  EXPECT_EQ(mask(task, context), mask(task, context));
  EXPECT_NE(mask(task, context), mask(other, context));
  EXPECT_NE(mask(task, context), mask(task, {.step = 6, .seed = 11}));
  EXPECT_NE(mask(task, context), mask(task, {.step = 5, .seed = 12}));
}

/// Two ranks that hold the two halves of a tensor drop exactly what one rank with all of it drops.
TEST(Dropout, PartsOfATensorAgreeWithTheWhole) {
  const Shape shape{.n = 1, .c = 6, .d = 1, .h = 8, .w = 4};
  model::DropoutTask task{.rate = 0.5, .layer = 1, .global = shape, .box = tensor::whole(shape)};
  task.src = task.dst = channels_last(shape);
  std::vector<float> whole(192, 1.0F), parts(192, 1.0F);
  execute(task, {whole.data(), whole.data()});
  for (const std::int64_t first : {0, 4}) {
    task.box.lo.h = first;
    task.box.hi.h = first + 4;
    task.src.extents.h = 4;
    task.src.offset = first * task.src.strides.h;
    task.dst = task.src;
    execute(task, {parts.data(), parts.data()}, 1);
  }

  EXPECT_EQ(whole, parts);
}

}  // namespace
}  // namespace orthant::test
