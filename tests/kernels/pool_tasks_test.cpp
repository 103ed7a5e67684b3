#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::Pass;
using model::PoolKind;
using model::PoolTask;

PoolTask task_of(const ShapeLine& line, Pass pass, Room room) {
  tensor::Shape dst = dst_shape(line);
  dst.c = line.c;
  return {.pass = pass,
          .kind = line.kind == "max" ? PoolKind::max : PoolKind::average,
          .window = line.window,
          .count_include_pad = line.kind != "average_inside",
          .activation = {},
          .accumulate = false,
          .src = layout_with(room, src_shape(line)),
          .dst = layout_with(room, dst)};
}

/// Adds the nulls that the task asks for.
void expect_right(const ShapeLine& line, const PoolTask& task, Case one = {}) {
  one.task = task;
  if (task.kind == PoolKind::average) one.nulls.push_back(task.pass == Pass::forward ? 2 : 1);
  if (task.pass != Pass::forward && task.activation.kind == ActivationKind::identity) one.nulls.push_back(2);
  EXPECT_EQ(check(one), "") << line.text << " with " << model::name_of(task.activation.kind)
                            << (task.accumulate ? ", accumulating" : "") << (one.shared.empty() ? "" : ", in place")
                            << (tensor::is_dense(task.src) ? "" : ", strided");
}

class PoolTasks : public testing::Test {
 protected:
  const std::vector<ShapeLine> lines_ = read_shapes(ORTHANT_SHAPES "/pool_shapes.txt");
};

TEST_F(PoolTasks, ListHasEveryKind) {
  for (const char* kind : {"max", "average", "average_inside"}) {
    EXPECT_TRUE(std::any_of(lines_.begin(), lines_.end(), [&](const ShapeLine& line) { return line.kind == kind; }))
        << kind;
  }
}

TEST_F(PoolTasks, ForwardIsRight) {
  for (const ShapeLine& line : lines_) {
    expect_right(line, task_of(line, Pass::forward, Room::none));
    expect_right(line, task_of(line, Pass::forward, Room::channels));
    expect_right(line, task_of(line, Pass::forward, Room::both));
  }
}

TEST_F(PoolTasks, BackwardIsRight) {
  for (const ShapeLine& line : lines_) {
    expect_right(line, task_of(line, Pass::backward_data, Room::none));
    expect_right(line, task_of(line, Pass::backward_data, Room::both));
  }
}

TEST_F(PoolTasks, BackwardOfActivationAndPoolIsRight) {
  for (const ShapeLine& line : lines_) {
    PoolTask task = task_of(line, Pass::backward_data, Room::none);
    for (const ActivationKind kind :
         {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::tanh, ActivationKind::sigmoid}) {
      task.activation = {.kind = kind, .slope = 0.25};
      expect_right(line, task, {.task = {}, .nulls = {}, .shared = {{3, 2}}});
    }
    expect_right(line, task);
    task.activation = {.kind = ActivationKind::relu};
    expect_right(line, task);
    task.src = layout_with(Room::halo, src_shape(line));
    expect_right(line, task, {.task = {}, .nulls = {}, .shared = {{3, 2}}});
  }
}

TEST_F(PoolTasks, BackwardAddsToWhatIsThere) {
  for (const ShapeLine& line : lines_) {
    for (const Room room : {Room::none, Room::channels}) {
      PoolTask task = task_of(line, Pass::backward_data, room);
      task.accumulate = true;
      expect_right(line, task);
    }
  }
}

}  // namespace
}  // namespace orthant::test
