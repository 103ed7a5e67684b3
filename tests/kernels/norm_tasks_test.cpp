#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

using model::Activation;
using model::ActivationKind;
using model::NormTask;
using model::Pass;

NormTask task_of(const ShapeLine& line, Pass pass, Room room, const Activation& activation, bool residual) {
  NormTask task;
  task.pass = pass;
  task.activation = activation;
  task.residual = residual;
  task.statistics_count = tensor::pixels(src_shape(line));
  const tensor::Layout roomy = layout_with(room, src_shape(line));
  const tensor::Layout dense = tensor::channels_last(src_shape(line));
  task.x = task.diff_x = dense;
  task.y = task.diff_y = task.diff_y2 = task.diff_residual = task.residual_layout = roomy;
  return task;
}

struct Variant {
  Activation activation;
  bool residual = false;
};
const std::vector<Variant> variants{{{.kind = ActivationKind::identity}, false},
                                    {{.kind = ActivationKind::identity}, true},
                                    {{.kind = ActivationKind::relu}, false},
                                    {{.kind = ActivationKind::relu}, true},
                                    {{.kind = ActivationKind::leaky_relu, .slope = 0.1}, false},
                                    {{.kind = ActivationKind::tanh}, false},
                                    {{.kind = ActivationKind::sigmoid}, true}};

void expect_right(const ShapeLine& line, const NormTask& task, Case one = {}) {
  one.task = task;
  if (!task.residual) one.nulls.push_back(task.pass == Pass::forward ? 6 : 10);
  std::string arguments;
  for (const int null : one.nulls) arguments += " null " + std::to_string(null);
  for (const auto& [a, b] : one.shared) arguments += " " + std::to_string(a) + " in " + std::to_string(b);
  EXPECT_EQ(check(one), "") << line.text << " with " << model::name_of(task.activation.kind)
                            << (task.residual ? ", residual" : "") << (task.training ? ", training" : ", evaluation")
                            << arguments << (tensor::is_dense(task.y) ? "" : ", strided");
}

class NormTasks : public testing::Test {
 protected:
  const std::vector<ShapeLine> lines_ = read_shapes(ORTHANT_SHAPES "/norm_shapes.txt");
};

TEST_F(NormTasks, ForwardIsRight) {
  for (const ShapeLine& line : lines_) {
    for (const auto& [activation, residual] : variants) {
      NormTask task = task_of(line, Pass::forward, Room::none, activation, residual);
      expect_right(line, task);
      task.training = false;
      expect_right(line, task);
    }
    expect_right(line, task_of(line, Pass::forward, Room::channels, variants[2].activation, false));
    expect_right(line, task_of(line, Pass::forward, Room::both, variants[3].activation, true));
  }
}

TEST_F(NormTasks, BackwardIsRight) {
  constexpr int diff_y2 = 1;
  for (const ShapeLine& line : lines_) {
    for (const auto& [activation, residual] : variants) {
      const NormTask task = task_of(line, Pass::backward_data, Room::none, activation, residual);
      expect_right(line, task, {.task = {}, .nulls = {diff_y2}, .shared = {}});
      expect_right(line, task);
    }
    expect_right(line, task_of(line, Pass::backward_data, Room::channels, variants[2].activation, false));
    expect_right(line, task_of(line, Pass::backward_data, Room::both, variants[3].activation, true));
  }
}

TEST_F(NormTasks, BackwardFindsTheActivationFromX) {
  constexpr int diff_y2 = 1, y = 3;
  for (const ShapeLine& line : lines_) {
    for (const auto& [activation, residual] : variants) {
      if (residual) continue;
      const NormTask task = task_of(line, Pass::backward_data, Room::none, activation, residual);
      expect_right(line, task, {.task = {}, .nulls = {diff_y2, y}, .shared = {}});
      expect_right(line, task, {.task = {}, .nulls = {y}, .shared = {}});
    }
  }
}

TEST_F(NormTasks, BackwardWritesOverWhatItRead) {
  constexpr int diff_y = 0, diff_y2 = 1, x = 2, y = 3, diff_x = 9, diff_residual = 10;
  const Activation relu{.kind = ActivationKind::relu};
  for (const ShapeLine& line : lines_) {
    const NormTask plain = task_of(line, Pass::backward_data, Room::none, relu, false);
    for (const int where : {diff_y, x, y})
      expect_right(line, plain, {.task = {}, .nulls = {diff_y2}, .shared = {{diff_x, where}}});
    for (const int where : {diff_y, diff_y2, x, y})
      expect_right(line, plain, {.task = {}, .nulls = {}, .shared = {{diff_x, where}}});
    const NormTask sum = task_of(line, Pass::backward_data, Room::none, relu, true);
    for (const auto& [first, second] : {std::pair(x, diff_y), std::pair(diff_y, y), std::pair(y, x)}) {
      expect_right(line, sum, {.task = {}, .nulls = {diff_y2}, .shared = {{diff_x, first}, {diff_residual, second}}});
    }
    expect_right(line, sum, {.task = {}, .nulls = {}, .shared = {{diff_x, diff_y2}, {diff_residual, diff_y}}});
  }
}

}  // namespace
}  // namespace orthant::test
