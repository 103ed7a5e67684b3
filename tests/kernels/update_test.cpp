#include "tests/kernels/execute.hpp"
#include "tests/support/harness.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::test {
namespace {

using model::Optimizer;
using model::OptimizerKind;
using model::UpdateTask;

/// A parameter under a gradient of 2w, step by step.
struct Descent {
  Optimizer optimizer;
  std::vector<float> weights, gradient, state0, state1;
  std::int64_t step = 0;

  Descent(const Optimizer& chosen, std::size_t count)
      : optimizer(chosen), weights(count, 1), gradient(count), state0(count), state1(count) {}

  void advance(double learning_rate, int threads = 2) {
    for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] = 2 * weights[i];
    execute(UpdateTask{.optimizer = optimizer, .count = static_cast<std::int64_t>(weights.size())},
            {weights.data(), gradient.data(), state0.data(), state1.data(), nullptr}, threads,
            {.step = ++step, .seed = 0, .learning_rate = learning_rate});
  }
};

TEST(Update, FirstAdamStepIsTheLearningRate) {
  Descent descent({.kind = OptimizerKind::adam}, 20);

  descent.advance(0.01);

  for (const float weight : descent.weights) EXPECT_NEAR(static_cast<double>(weight), 0.99, 1e-6);
}

TEST(Update, AdamwDecaysTheWeightItself) {
  Descent descent({.kind = OptimizerKind::adamw, .weight_decay = 0.1}, 3);

  descent.advance(0.01);

  for (const float weight : descent.weights) EXPECT_NEAR(static_cast<double>(weight), 1 - 0.001 - 0.01, 1e-6);
}

TEST(Update, NesterovLooksAhead) {
  Descent descent({.kind = OptimizerKind::sgd, .momentum = 0.5, .nesterov = true}, 1);

  descent.advance(0.25);  // g = 2, buffer 2, step 2 + 0.5 * 2 = 3
  EXPECT_EQ(descent.weights[0], 0.25F);
  descent.advance(0.25);  // g = 0.5, buffer 1.5, step 0.5 + 0.75
  EXPECT_EQ(descent.weights[0], -0.0625F);
}

TEST(Update, EveryOptimizerDescends) {
  for (const Optimizer& optimizer :
       {Optimizer{.kind = OptimizerKind::sgd}, Optimizer{.kind = OptimizerKind::sgd, .momentum = 0.9},
        Optimizer{.kind = OptimizerKind::adam}, Optimizer{.kind = OptimizerKind::adamw, .weight_decay = 0.01}}) {
    Descent descent(optimizer, 100);
    for (int i = 0; i < 300; ++i) descent.advance(0.02);
    for (const float weight : descent.weights) EXPECT_LT(std::abs(weight), 0.05F);
  }
}

TEST(Update, IsTheSameForAnyNumberOfThreads) {
  const Optimizer adam{.kind = OptimizerKind::adam, .weight_decay = 0.01};
  Descent one(adam, 30001), three(adam, 30001);
  for (int i = 0; i < 3; ++i) {
    one.advance(0.1, 1);
    three.advance(0.1, 3);
  }

  EXPECT_EQ(one.weights, three.weights);
  EXPECT_EQ(one.state1, three.state1);
}

TEST(Update, IsRightOnManyItems) {
  EXPECT_EQ(
      check(
          {.task = UpdateTask{.optimizer = {.kind = OptimizerKind::adam}, .count = 20003}, .nulls = {4}, .shared = {}}),
      "");
}

}  // namespace
}  // namespace orthant::test
