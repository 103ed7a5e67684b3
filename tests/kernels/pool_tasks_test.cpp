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

PoolTask task_of(const ShapeLine& line, Pass pass, Room room, Room dst_room) {
  tensor::Shape dst = dst_shape(line);
  dst.c = line.c;
  return {.pass = pass,
          .kind = line.kind == "max" ? PoolKind::max : PoolKind::average,
          .window = line.window,
          .count_include_pad = line.kind != "average_inside",
          .activation = {},
          .accumulate = false,
          .src = layout_with(room, src_shape(line)),
          .dst = layout_with(dst_room, dst)};
}

PoolTask task_of(const ShapeLine& line, Pass pass, Room room) { return task_of(line, pass, room, room); }

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
    expect_right(line, task_of(line, Pass::forward, Room::none, Room::halo));
    expect_right(line, task_of(line, Pass::forward, Room::halo, Room::none));
  }
}

TEST_F(PoolTasks, BackwardIsRight) {
  for (const ShapeLine& line : lines_) {
    expect_right(line, task_of(line, Pass::backward_data, Room::none));
    expect_right(line, task_of(line, Pass::backward_data, Room::both));
    expect_right(line, task_of(line, Pass::backward_data, Room::none, Room::halo));
    expect_right(line, task_of(line, Pass::backward_data, Room::halo, Room::channels));
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

/// Cuts src and dst of a whole pooling to a part of it along every dim: dst [lo, hi), and src from the first cell that
/// these windows reach to some cells beyond the last.
PoolTask part_of(const PoolTask& whole, std::int64_t more) {
  PoolTask part = whole;
  tensor::Shape src = whole.src.extents, dst = whole.dst.extents;
  part.global_src = tensor::spatial(src);
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const std::int64_t lo = dst[dim] / 3, hi = std::max(lo + 1, dst[dim] - dst[dim] / 4);
    const std::int64_t begin = lo * whole.window.stride[dim] - whole.window.pad_lo[dim];
    const std::int64_t end =
        (hi - 1) * whole.window.stride[dim] - whole.window.pad_lo[dim] + tensor::reach(whole.window, dim) + more;
    const std::int64_t first = std::clamp<std::int64_t>(begin, 0, src[dim] - 1);
    src[dim] = std::clamp(end, first + 1, src[dim]) - first;
    dst[dim] = hi - lo;
    part.first_src[dim] = first;
    part.window.pad_lo[dim] = first - begin;
    part.window.pad_hi[dim] = 7;
  }
  part.src = layout_with(Room::halo, src);
  part.dst = layout_with(more == 0 ? Room::none : Room::both, dst);
  return part;
}

TEST_F(PoolTasks, LocalPartsAreRight) {
  for (const ShapeLine& line : lines_) {
    for (const Pass pass : {Pass::forward, Pass::backward_data}) {
      const PoolTask whole = task_of(line, pass, Room::none);
      for (const std::int64_t more : {0, 2}) expect_right(line, part_of(whole, more));
    }
  }
}

/// Backward of a part of src: windows reach beyond it, but divide by what is inside the global tensor.
TEST_F(PoolTasks, PartsOfSrcAreRight) {
  for (const ShapeLine& line : lines_) {
    for (const Pass pass : {Pass::forward, Pass::backward_data}) {
      PoolTask task = task_of(line, pass, Room::none);
      if (pass == Pass::forward && task.kind == PoolKind::max) continue;
      tensor::Shape src = task.src.extents;
      task.global_src = tensor::spatial(src);
      for (const tensor::Dim dim : tensor::spatial_dims) {
        task.first_src[dim] = src[dim] / 3;
        src[dim] -= task.first_src[dim];
        task.window.pad_lo[dim] += task.first_src[dim];
      }
      task.src = layout_with(Room::none, src);
      if (task.kind == PoolKind::average) expect_right(line, task);
    }
  }
}

}  // namespace
}  // namespace orthant::test
