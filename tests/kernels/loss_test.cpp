#include "orthant/base/error.hpp"
#include "tests/kernels/execute.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orthant::test {
namespace {

using model::LossKind;
using model::LossTask;
using tensor::Shape;

LossTask task_of(const Shape& shape, const std::vector<model::LossTerm>& terms) {
  return {.loss = {.terms = terms}, .global = shape, .output = tensor::channels_last(shape)};
}

/// Both tasks, as one rank runs them.
void run(const LossTask& task, std::vector<float>& output, void* target, void* diff, std::vector<double>& losses) {
  std::vector<double> sums(static_cast<std::size_t>(model::loss_sum_count(task.loss, task.output.extents.c)));
  execute(model::LossSumsTask{.loss = task.loss, .output = task.output}, {output.data(), target, sums.data()});
  execute(task, {output.data(), target, sums.data(), diff, losses.data()});
}

std::vector<float> reals(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> items(static_cast<std::size_t>(count));
  for (float& item : items) item = static_cast<float>(random.real(-2, 2));
  return items;
}

/// The weighted sum of the terms.
double loss_of(const LossTask& task, std::vector<float> output, void* target) {
  std::vector<double> losses(task.loss.terms.size() + 1);
  run(task, output, target, nullptr, losses);
  return losses.back();
}

void expect_gradient_of_differences(const LossTask& task, void* target) {
  std::vector<float> output = reals(tensor::volume(task.output.extents), 3), diff(output.size());
  std::vector<double> losses(task.loss.terms.size() + 1);
  run(task, output, target, diff.data(), losses);
  for (std::size_t i = 0; i < output.size(); ++i) {
    constexpr float step = 1.0F / 512;
    std::vector<float> above = output, below = output;
    above[i] += step;
    below[i] -= step;
    const double slope =
        (loss_of(task, above, target) - loss_of(task, below, target)) / (2 * static_cast<double>(step));
    EXPECT_NEAR(static_cast<double>(diff[i]), slope, 1e-5) << i;
  }
}

TEST(Loss, GradientIsThatOfFiniteDifferences) {
  const Shape shape{.n = 2, .c = 3, .h = 2, .w = 3};
  std::vector<float> values = reals(tensor::volume(shape), 9);
  std::vector<std::int32_t> labels{0, 2, 1, 1, 2, 0, 0, 0, 2, 1, 1, 1};
  for (const LossKind kind : {LossKind::mean_squared_error, LossKind::mean_absolute_error}) {
    expect_gradient_of_differences(task_of(shape, {{.kind = kind}}), values.data());
  }
  for (const LossKind kind : {LossKind::cross_entropy, LossKind::soft_dice}) {
    expect_gradient_of_differences(task_of(shape, {{.kind = kind}}), labels.data());
  }
  expect_gradient_of_differences(
      task_of(shape, {{.kind = LossKind::cross_entropy, .weight = 0.3}, {.kind = LossKind::soft_dice, .weight = 2}}),
      labels.data());
}

/// Numbers of torch.nn.functional.cross_entropy and mse_loss, worked out by hand.
TEST(Loss, MeansAreThoseOfPyTorch) {
  std::vector<float> output{0, 0, 1, 1};
  std::vector<std::int32_t> labels{0, 1};
  std::vector<float> target{1, 0, 1, -1};

  EXPECT_NEAR(loss_of(task_of({.n = 2, .c = 2}, {{.kind = LossKind::cross_entropy}}), output, labels.data()),
              std::log(2.0), 1e-12);
  EXPECT_NEAR(loss_of(task_of({.n = 2, .c = 2}, {{.kind = LossKind::mean_squared_error}}), output, target.data()), 1.25,
              1e-12);
  EXPECT_NEAR(loss_of(task_of({.n = 2, .c = 2}, {{.kind = LossKind::mean_absolute_error}}), output, target.data()),
              0.75, 1e-12);
}

TEST(Loss, WritesEveryTermAndTheirWeightedSum) {
  std::vector<float> output{3}, target{1};
  std::vector<double> losses(3);

  run(task_of({}, {{.kind = LossKind::mean_squared_error, .weight = 0.5},
                   {.kind = LossKind::mean_absolute_error, .weight = 10}}),
      output, target.data(), nullptr, losses);

  EXPECT_EQ(losses, (std::vector<double>{4, 2, 22}));
}

TEST(Loss, AbsoluteErrorHasNoSlopeAtZero) {
  std::vector<float> output{2, 5}, target{2, 1}, diff(2);
  std::vector<double> losses(2);

  run(task_of({.c = 2}, {{.kind = LossKind::mean_absolute_error}}), output, target.data(), diff.data(), losses);

  EXPECT_EQ(diff, (std::vector<float>{0, 0.5F}));
}

TEST(Loss, CrossEntropyStandsLargeOutputs) {
  std::vector<float> output{1000, -1000}, diff(2);
  std::vector<std::int32_t> labels{1};
  std::vector<double> losses(2);

  run(task_of({.c = 2}, {{.kind = LossKind::cross_entropy}}), output, labels.data(), diff.data(), losses);

  EXPECT_EQ(losses[0], 2000);
  EXPECT_EQ(diff, (std::vector<float>{1, -1}));
}

TEST(Loss, AbsentAndUnpredictedClassCountsAsRight) {
  std::vector<float> output{50, -50, 50, -50};
  std::vector<std::int32_t> labels{0, 0};

  EXPECT_NEAR(loss_of(task_of({.n = 2, .c = 2}, {{.kind = LossKind::soft_dice}}), output, labels.data()), 0, 1e-6);
}

TEST(Loss, RefusesLabelsThatAreNoClass) {
  for (const std::int32_t bad : {-1, 3, 255}) {
    std::vector<float> output(6, 0.0F), diff(6);
    std::vector<std::int32_t> labels{2, bad};
    std::vector<double> losses(2);
    try {
      run(task_of({.n = 2, .c = 3}, {{.kind = LossKind::cross_entropy}}), output, labels.data(), diff.data(), losses);
      ADD_FAILURE() << "label " << bad << " was taken";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), base::Exit::bad_data);
      EXPECT_NE(std::string(error.what()).find("label " + std::to_string(bad)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("3 classes"), std::string::npos) << error.what();
    }
  }
}

TEST(Loss, NanInTheOutputIsNanInTheLoss) {
  std::vector<float> output{1, std::nanf("")};
  std::vector<std::int32_t> labels{0};
  std::vector<float> target{0, 0};

  EXPECT_TRUE(std::isnan(loss_of(task_of({.c = 2}, {{.kind = LossKind::cross_entropy}}), output, labels.data())));
  EXPECT_TRUE(std::isnan(loss_of(task_of({.c = 2}, {{.kind = LossKind::mean_squared_error}}), output, target.data())));
}

}  // namespace
}  // namespace orthant::test
