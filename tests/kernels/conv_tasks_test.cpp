#include "orthant/kernels/conv.hpp"
#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orthant::test {
namespace {

using model::Activation;
using model::ActivationKind;
using model::ConvTask;
using model::Pass;

/// Every way to run the task.
Make candidates(const ConvTask& task) {
  return [task](int threads) {
    std::vector<std::unique_ptr<kernels::Primitive>> all;
    for (kernels::ConvCandidate& candidate : kernels::conv_candidates(task, threads))
      all.push_back(std::move(candidate.primitive));
    return all;
  };
}

ConvTask task_of(const ShapeLine& line, Pass pass, bool bias, Room room) {
  return {.pass = pass,
          .window = line.window,
          .groups = line.g,
          .bias = bias,
          .activation = {},
          .src = layout_with(room, src_shape(line)),
          .dst = layout_with(room, dst_shape(line))};
}

void expect_right(const ShapeLine& line, const ConvTask& task) {
  const int bias_argument = task.pass == Pass::forward ? 2 : 3;
  std::vector<int> nulls;
  if (!task.bias && task.pass != Pass::backward_data) nulls.push_back(bias_argument);
  EXPECT_EQ(check({.task = task, .nulls = nulls, .shared = {}}, candidates(task)), "")
      << line.text << (task.bias ? " with bias" : "") << " and " << model::name_of(task.activation.kind)
      << (tensor::is_dense(task.src) ? "" : ", strided");
}

class ConvTasks : public testing::Test {
 protected:
  const std::vector<ShapeLine> lines_ = read_shapes(ORTHANT_SHAPES "/conv_shapes.txt");
  const std::array<Activation, 5> activations_{
      Activation{.kind = ActivationKind::leaky_relu, .slope = 0.25}, Activation{.kind = ActivationKind::tanh},
      Activation{.kind = ActivationKind::sigmoid}, Activation{.kind = ActivationKind::identity},
      Activation{.kind = ActivationKind::leaky_relu, .slope = 0.01}};
  const std::array<Room, 3> rooms_{Room::channels, Room::halo, Room::both};
};

TEST_F(ConvTasks, ListIsLong) { EXPECT_GE(lines_.size(), 200U); }

TEST_F(ConvTasks, ForwardIsRight) {
  for (const ShapeLine& line : lines_) expect_right(line, task_of(line, Pass::forward, false, Room::none));
}

TEST_F(ConvTasks, ForwardWithBiasAndActivationIsRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    ConvTask task = task_of(line, Pass::forward, true, Room::none);
    task.activation.kind = ActivationKind::relu;
    expect_right(line, task);
    task.activation = activations_[index++ % activations_.size()];
    expect_right(line, task);
  }
}

TEST_F(ConvTasks, BackwardDataIsRight) {
  for (const ShapeLine& line : lines_) expect_right(line, task_of(line, Pass::backward_data, false, Room::none));
}

TEST_F(ConvTasks, BackwardWeightsIsRight) {
  for (const ShapeLine& line : lines_) {
    expect_right(line, task_of(line, Pass::backward_weights, false, Room::none));
    expect_right(line, task_of(line, Pass::backward_weights, true, Room::none));
  }
}

TEST_F(ConvTasks, StridedBoxesAreRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    const Room room = rooms_[index++ % rooms_.size()];
    expect_right(line, task_of(line, Pass::forward, true, room));
    expect_right(line, task_of(line, Pass::backward_data, false, room));
    expect_right(line, task_of(line, Pass::backward_weights, true, room));
  }
}

}  // namespace
}  // namespace orthant::test
