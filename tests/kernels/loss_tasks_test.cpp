#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

using model::Loss;
using model::LossKind;
using model::LossTask;
using model::Optimizer;
using model::OptimizerKind;

void expect_right(const Loss& loss) {
  constexpr int output = 0, diff_output = 3;
  for (const ShapeLine& line : read_shapes(ORTHANT_SHAPES "/tensor_shapes.txt")) {
    const tensor::Shape shape = src_shape(line);
    if (model::takes_labels(loss) && shape.c < 2) continue;
    for (const Room room : {Room::none, Room::channels, Room::halo, Room::both}) {
      const tensor::Layout layout = layout_with(room, shape);
      const model::LossSumsTask sums{.loss = loss, .output = layout};
      EXPECT_EQ(check({.task = sums, .nulls = {}, .shared = {}}), "") << line.text << " sums";
      const tensor::Shape global{shape.n + 1, shape.c, shape.d, 2 * shape.h, shape.w};
      const LossTask task{.loss = loss, .global = global, .output = layout};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{diff_output, output}}}), "") << line.text << " in place";
      EXPECT_EQ(check({.task = task, .nulls = {diff_output}, .shared = {}}), "") << line.text << " without a gradient";
    }
  }
}

TEST(LossTasks, MeanSquaredErrorIsRight) { expect_right({.terms = {{.kind = LossKind::mean_squared_error}}}); }

TEST(LossTasks, MeanAbsoluteErrorIsRight) { expect_right({.terms = {{.kind = LossKind::mean_absolute_error}}}); }

TEST(LossTasks, CrossEntropyIsRight) { expect_right({.terms = {{.kind = LossKind::cross_entropy}}}); }

TEST(LossTasks, SoftDiceIsRight) { expect_right({.terms = {{.kind = LossKind::soft_dice}}}); }

TEST(LossTasks, WeightedSumsAreRight) {
  expect_right({.terms = {{.kind = LossKind::mean_squared_error, .weight = 0.3},
                          {.kind = LossKind::mean_absolute_error, .weight = 2}}});
  expect_right(
      {.terms = {{.kind = LossKind::cross_entropy, .weight = 0.5}, {.kind = LossKind::soft_dice, .weight = 1.5}}});
}

TEST(UpdateTasks, AreRight) {
  const std::vector<Optimizer> optimizers{
      {.kind = OptimizerKind::sgd},
      {.kind = OptimizerKind::sgd, .weight_decay = 0.01},
      {.kind = OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 0.01},
      {.kind = OptimizerKind::sgd, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
      {.kind = OptimizerKind::adam},
      {.kind = OptimizerKind::adam, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-4},
      {.kind = OptimizerKind::adamw, .weight_decay = 0.1},
  };
  for (const Optimizer& optimizer : optimizers) {
    for (const std::int64_t count : {1, 3, 15, 16, 17, 64, 1000, 4099}) {
      std::vector<int> nulls;
      if (model::state_count(optimizer) < 1) nulls.push_back(2);
      if (model::state_count(optimizer) < 2) nulls.push_back(3);
      for (const auto& [arrived, kept] : {std::pair{0, 0}, {1, 0}, {3, 0}, {0, 1}, {2, 3}}) {
        const model::UpdateTask task{.optimizer = optimizer, .count = count, .arrived = arrived, .kept = kept};
        std::vector<int> none = nulls;
        if (arrived == 0) none.push_back(4);
        EXPECT_EQ(check({.task = task, .nulls = none, .shared = {}}), "")
            << count << " items, momentum " << optimizer.momentum << ", arrived from " << arrived << ", kept by "
            << kept;
      }
    }
  }
}

}  // namespace
}  // namespace orthant::test
