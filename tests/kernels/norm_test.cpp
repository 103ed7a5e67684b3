#include "orthant/base/error.hpp"
#include "tests/kernels/execute.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::NormSumsTask;
using model::NormTask;
using model::Pass;
using tensor::Shape;

NormTask task_of(const Shape& shape, ActivationKind kind = ActivationKind::identity) {
  NormTask task;
  task.x = task.y = tensor::channels_last(shape);
  task.statistics_count = tensor::pixels(shape);
  task.activation.kind = kind;
  return task;
}

/// Everything a batch normalisation of `channels` reads and writes besides its tensors.
struct Parameters {
  std::vector<float> gamma, beta, mean, variance, saved, diff_gamma, diff_beta;
  std::vector<double> sums;

  explicit Parameters(std::size_t channels)
      : gamma(channels, 1),
        beta(channels, 0),
        mean(channels, 0),
        variance(channels, 1),
        saved(2 * channels),
        diff_gamma(channels),
        diff_beta(channels),
        sums(2 * channels) {}
};

/// Both tasks, as one rank runs them.
void forward(const NormTask& task, Parameters& p, std::vector<float>& x, std::vector<float>& y, int threads = 2) {
  execute(NormSumsTask{.x = task.x}, {x.data(), p.sums.data()}, threads);
  execute(task,
          {x.data(), p.gamma.data(), p.beta.data(), p.mean.data(), p.variance.data(), p.sums.data(), p.saved.data(),
           nullptr, y.data()},
          threads);
}

TEST(Norm, IsRightWhereSumsAreFlushedManyTimes) {
  for (const Shape& shape : {Shape{2, 3, 9, 17, 19}, Shape{1, 64, 5, 11, 13}, Shape{3, 1, 1, 99, 101}}) {
    NormTask task = task_of(shape, ActivationKind::relu);
    NormSumsTask sums{.activation = task.activation, .x = task.x};
    EXPECT_EQ(check({.task = sums, .nulls = {}, .shared = {}}), "") << tensor::to_text(shape);
    EXPECT_EQ(check({.task = task, .nulls = {7}, .shared = {{8, 0}}}), "") << tensor::to_text(shape) << " in place";
    task.pass = sums.pass = Pass::backward_data;
    EXPECT_EQ(check({.task = sums, .nulls = {1, 3, 10}, .shared = {}}), "") << tensor::to_text(shape);
    EXPECT_EQ(check({.task = task, .nulls = {1, 3}, .shared = {{8, 0}}}), "") << tensor::to_text(shape);
  }
}

TEST(Norm, KeepsItsAccuracyFarFromZero) {
  const Shape shape{.n = 2, .c = 5, .d = 7, .h = 31, .w = 33};
  const auto count = static_cast<std::size_t>(tensor::volume(shape));
  std::vector<float> x(count), y(count);
  Random random(1);
  for (float& item : x) item = static_cast<float>(random.integer(-4, 4)) + 4096;
  Parameters p(5);

  forward(task_of(shape), p, x, y);

  for (std::size_t c = 0; c < 5; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < count; i += 5) sum += static_cast<double>(x[i]);
    const double mean = sum / static_cast<double>(count / 5);
    for (std::size_t i = c; i < count; i += 5) squares += std::pow(static_cast<double>(x[i]) - mean, 2);
    const double expected = 1 / std::sqrt(squares / static_cast<double>(count / 5) + 1e-5);
    EXPECT_NEAR(static_cast<double>(p.saved[c]), mean, 4096 * 1e-7);
    EXPECT_NEAR(static_cast<double>(p.saved[5 + c]), expected, expected * 1e-6);
  }
}

/// PyTorch: normalises with the biased variance, keeps the unbiased one.
TEST(Norm, RunningVarianceIsUnbiased) {
  std::vector<float> x{1, 3}, y(2);
  Parameters p(1);

  forward(task_of({.n = 2}), p, x, y);

  EXPECT_FLOAT_EQ(p.mean[0], 0.2F);
  EXPECT_FLOAT_EQ(p.variance[0], 0.9F + 0.1F * 2);
  EXPECT_NEAR(static_cast<double>(y[1]), 1 / std::sqrt(1 + 1e-5), 1e-6);
}

TEST(Norm, GradientIsThatOfFiniteDifferences) {
  const Shape shape{.n = 3, .c = 2, .w = 4};
  const auto count = static_cast<std::size_t>(tensor::volume(shape));
  for (const ActivationKind kind : {ActivationKind::identity, ActivationKind::tanh, ActivationKind::sigmoid}) {
    NormTask task = task_of(shape, kind);
    Random random(5);
    std::vector<float> x(count), y(count), weight(count), diff_x(count);
    for (float& item : x) item = static_cast<float>(random.real(-2, 2));
    for (float& item : weight) item = static_cast<float>(random.real(-1, 1));
    Parameters p(2);
    p.gamma = {0.7F, -1.3F};
    p.beta = {0.1F, 0.2F};
    const auto loss = [&](std::vector<float> at) {
      Parameters copy = p;
      forward(task, copy, at, y);
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(y[i]) * static_cast<double>(weight[i]);
      return sum;
    };
    forward(task, p, x, y);
    task.pass = Pass::backward_data;
    execute(NormSumsTask{.pass = Pass::backward_data, .activation = task.activation, .x = task.x},
            {weight.data(), nullptr, x.data(), nullptr, p.gamma.data(), p.beta.data(), p.saved.data(), p.sums.data(),
             p.diff_gamma.data(), p.diff_beta.data(), nullptr});
    execute(task, {weight.data(), nullptr, x.data(), nullptr, p.gamma.data(), p.beta.data(), p.saved.data(),
                   p.sums.data(), diff_x.data()});

    task.pass = Pass::forward;
    for (std::size_t i = 0; i < count; ++i) {
      constexpr float step = 1.0F / 128;
      std::vector<float> above = x, below = x;
      above[i] += step;
      below[i] -= step;
      EXPECT_NEAR(static_cast<double>(diff_x[i]), (loss(above) - loss(below)) / (2 * static_cast<double>(step)), 2e-3);
    }
  }
}

/// A rank without pixels adds nothing, but keeps the same statistics as the others.
TEST(Norm, RankWithoutPixelsFollowsTheOthers) {
  NormTask task = task_of({.n = 0, .c = 2});
  task.statistics_count = 4;
  std::vector<float> none;
  Parameters p(2);
  p.sums = {9, 9, 9, 9};

  execute(NormSumsTask{.x = task.x}, {none.data(), p.sums.data()});
  EXPECT_EQ(p.sums, (std::vector<double>{0, 0, 0, 0}));

  p.sums = {4, 8, 16, 32};
  execute(task, {none.data(), p.gamma.data(), p.beta.data(), p.mean.data(), p.variance.data(), p.sums.data(),
                 p.saved.data(), nullptr, none.data()});
  EXPECT_FLOAT_EQ(p.saved[1], 2);
  EXPECT_FLOAT_EQ(p.mean[0], 0.1F);
  EXPECT_FLOAT_EQ(p.variance[1], 0.9F + 0.1F * 4 * 4 / 3);

  task.pass = Pass::backward_data;
  execute(NormSumsTask{.pass = Pass::backward_data, .x = task.x},
          {none.data(), nullptr, none.data(), nullptr, p.gamma.data(), p.beta.data(), p.saved.data(), p.sums.data(),
           p.diff_gamma.data(), p.diff_beta.data(), nullptr});
  EXPECT_EQ(p.sums, (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(p.diff_gamma, (std::vector<float>{0, 0}));
}

TEST(Norm, ConstantChannelGivesBeta) {
  std::vector<float> x(64, 3.7F), y(64);
  Parameters p(1);
  p.beta[0] = 0.25F;

  forward(task_of({.n = 64}), p, x, y);

  for (const float item : y) EXPECT_EQ(item, 0.25F);
}

TEST(Norm, RefusesToTrainOnOneValuePerChannel) {
  EXPECT_THROW(kernels::make_primitive(task_of({.n = 1, .c = 8}), 1), base::Error);
}

}  // namespace
}  // namespace orthant::test
