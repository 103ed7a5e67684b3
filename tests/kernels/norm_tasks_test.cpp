#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

using model::Activation;
using model::ActivationKind;
using model::NormSumsTask;
using model::NormTask;
using model::Pass;

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
                                    {{.kind = ActivationKind::sigmoid}, true},
                                    {{.kind = ActivationKind::elu, .slope = 0.5}, false},
                                    {{.kind = ActivationKind::hard_sigmoid}, true}};
/// Those whose derivative is taken from what goes into them: it is found in x.
const std::vector<Variant> from_x{{{.kind = ActivationKind::silu}, false},
                                  {{.kind = ActivationKind::gelu}, false},
                                  {{.kind = ActivationKind::hard_swish}, false}};

/// How the tensors of a task lie.
struct Rooms {
  Room x = Room::none, y = Room::none;
};
const std::vector<Rooms> strided{{Room::none, Room::channels},
                                 {Room::none, Room::both},
                                 {Room::halo, Room::none},
                                 {Room::halo, Room::halo},
                                 {Room::both, Room::both}};

NormTask task_of(const ShapeLine& line, Pass pass, const Variant& variant, Rooms rooms = {}) {
  NormTask task;
  task.pass = pass;
  task.activation = variant.activation;
  task.residual = variant.residual;
  task.statistics_count = std::max<std::int64_t>(tensor::pixels(src_shape(line)), 2);
  task.x = task.diff_x = layout_with(rooms.x, src_shape(line));
  task.y = task.diff_y = task.diff_y2 = task.residual_layout = layout_with(rooms.y, src_shape(line));
  return task;
}

NormSumsTask sums_of(const ShapeLine& line, Pass pass, const Activation& activation, Rooms rooms = {}) {
  NormSumsTask task;
  task.pass = pass;
  task.activation = activation;
  task.x = layout_with(rooms.x, src_shape(line));
  task.y = task.diff_y = task.diff_y2 = task.diff_residual = layout_with(rooms.y, src_shape(line));
  return task;
}

std::string text_of(const Case& one) {
  std::string text;
  for (const int null : one.nulls) text += " null " + std::to_string(null);
  for (const auto& [a, b] : one.shared) text += " " + std::to_string(a) + " in " + std::to_string(b);
  return text;
}

template <class Task>
void expect_right(const ShapeLine& line, const Task& task, Case one = {}) {
  one.task = task;
  if constexpr (std::is_same_v<Task, NormTask>) {
    if (!task.residual && task.pass == Pass::forward) one.nulls.push_back(7);
  }
  EXPECT_EQ(check(one), "") << line.text << " with " << model::name_of(task.activation.kind) << text_of(one)
                            << (tensor::is_dense(task.x) ? "" : ", x strided")
                            << (tensor::is_dense(task.y) ? "" : ", y strided");
}

class NormTasks : public testing::Test {
 protected:
  const std::vector<ShapeLine> lines_ = read_shapes(ORTHANT_SHAPES "/norm_shapes.txt");
};

TEST_F(NormTasks, ForwardSumsAreRight) {
  for (const ShapeLine& line : lines_) {
    for (const Room room : {Room::none, Room::channels, Room::halo, Room::both}) {
      expect_right(line, sums_of(line, Pass::forward, {}, {room, Room::none}));
    }
  }
}

TEST_F(NormTasks, ForwardIsRight) {
  for (const ShapeLine& line : lines_) {
    for (const Variant& variant : variants) {
      NormTask task = task_of(line, Pass::forward, variant);
      expect_right(line, task);
      task.training = false;
      expect_right(line, task);
    }
    for (const Rooms& rooms : strided) {
      expect_right(line, task_of(line, Pass::forward, variants[2], rooms));
      expect_right(line, task_of(line, Pass::forward, variants[3], rooms));
    }
  }
}

TEST_F(NormTasks, BackwardSumsAreRight) {
  constexpr int diff_y2 = 1, y = 3, diff_residual = 10;
  for (const ShapeLine& line : lines_) {
    for (const auto& [activation, residual] : variants) {
      const NormSumsTask task = sums_of(line, Pass::backward_data, activation);
      expect_right(line, task);
      if (residual) continue;
      expect_right(line, task, {.task = {}, .nulls = {diff_y2, diff_residual}, .shared = {}});
      expect_right(line, task, {.task = {}, .nulls = {diff_y2, y, diff_residual}, .shared = {}});
      expect_right(line, task, {.task = {}, .nulls = {y}, .shared = {}});
    }
    for (const Rooms& rooms : strided) {
      NormSumsTask task = sums_of(line, Pass::backward_data, variants[2].activation, rooms);
      expect_right(line, task);
      task.accumulate = true;
      expect_right(line, task, {.task = {}, .nulls = {diff_y2, y, diff_residual}, .shared = {}});
    }
  }
}

TEST_F(NormTasks, BackwardIsRight) {
  constexpr int diff_y2 = 1, y = 3;
  for (const ShapeLine& line : lines_) {
    for (const Variant& variant : variants) {
      NormTask task = task_of(line, Pass::backward_data, variant);
      expect_right(line, task);
      expect_right(line, task, {.task = {}, .nulls = {diff_y2}, .shared = {}});
      expect_right(line, task, {.task = {}, .nulls = {diff_y2, y}, .shared = {}});
      task.training = false;
      expect_right(line, task, {.task = {}, .nulls = {y}, .shared = {}});
    }
    for (const Rooms& rooms : strided) expect_right(line, task_of(line, Pass::backward_data, variants[2], rooms));
  }
}

TEST_F(NormTasks, BackwardWritesOverWhatItRead) {
  constexpr int diff_y = 0, diff_y2 = 1, x = 2, y = 3, diff_x = 8, diff_residual = 10;
  const Activation relu{.kind = ActivationKind::relu};
  for (const ShapeLine& line : lines_) {
    const NormTask task = task_of(line, Pass::backward_data, {relu, false});
    const NormSumsTask sums = sums_of(line, Pass::backward_data, relu);
    for (const int where : {diff_y, diff_y2, x, y}) {
      expect_right(line, task, {.task = {}, .nulls = {}, .shared = {{diff_x, where}}});
      if (where != x) expect_right(line, sums, {.task = {}, .nulls = {}, .shared = {{diff_residual, where}}});
    }
  }
}

/// Groups of all channels, of one, and, where they are many, a part of a tensor that begins and ends inside one.
std::vector<model::SampleGroups> groups_of(std::int64_t channels) {
  std::vector<model::SampleGroups> all{{.groups = 1, .channels = channels}, {.groups = channels, .channels = 1}};
  if (channels > 3) all.push_back({.groups = channels / 3 + 2, .channels = 3, .first = 2});
  return all;
}

TEST_F(NormTasks, PerSampleAndGroupAreRight) {
  constexpr int gamma = 1, beta = 2, running_mean = 3, running_var = 4;
  constexpr int diff_y2 = 1, y = 3, back_gamma = 4, back_beta = 5, diff_gamma = 8, diff_beta = 9, diff_residual = 10;
  std::vector<Variant> all = variants;
  all.insert(all.end(), from_x.begin(), from_x.end());
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    const tensor::Shape shape = src_shape(line);
    for (const model::SampleGroups& groups : groups_of(shape.c)) {
      for (int turn = 0; turn < 2; ++turn, ++index) {
        const Variant& variant = all[index % all.size()];
        const Rooms& rooms = strided[index % strided.size()];
        NormTask task = task_of(line, Pass::forward, variant, rooms);
        task.groups = groups;
        task.statistics_count = std::max<std::int64_t>(2, shape.d * shape.h * shape.w * groups.channels);
        expect_right(line, task, {.task = {}, .nulls = {running_mean, running_var}, .shared = {}});
        expect_right(line, task, {.task = {}, .nulls = {gamma, beta, running_mean, running_var}, .shared = {}});
        NormSumsTask sums = sums_of(line, Pass::forward, variant.activation, rooms);
        sums.groups = groups;
        expect_right(line, sums);
        task.pass = sums.pass = Pass::backward_data;
        expect_right(line, task, {.task = {}, .nulls = {diff_y2, y}, .shared = {}});
        expect_right(line, task, {.task = {}, .nulls = {diff_y2, y, back_gamma, back_beta}, .shared = {}});
        expect_right(line, sums, {.task = {}, .nulls = {diff_y2, y, diff_residual}, .shared = {}});
        sums.accumulate = true;
        expect_right(line, sums, {.task = {}, .nulls = {y}, .shared = {}});
        expect_right(line, sums,
                     {.task = {}, .nulls = {y, back_gamma, back_beta, diff_gamma, diff_beta}, .shared = {}});
      }
    }
  }
}

TEST_F(NormTasks, PerPixelAreRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    for (const bool affine : {true, false}) {
      const Rooms& rooms = strided[index++ % strided.size()];
      model::PixelNormTask task{.affine = affine,
                                .epsilon = 1e-2,
                                .x = layout_with(rooms.x, src_shape(line)),
                                .y = layout_with(rooms.y, src_shape(line)),
                                .diff_x = layout_with(rooms.y, src_shape(line))};
      const auto nulls = [&](std::vector<int> without) { return affine ? std::vector<int>{} : without; };
      EXPECT_EQ(check({.task = task, .nulls = nulls({1, 2}), .shared = {}}), "") << line.text;
      task.pass = Pass::backward_data;
      EXPECT_EQ(check({.task = task, .nulls = nulls({2, 5, 6}), .shared = {{4, 0}}}), "") << line.text << " over";
      task.accumulate = true;
      EXPECT_EQ(check({.task = task, .nulls = nulls({2, 5, 6}), .shared = {}}), "") << line.text << " backward";
    }
  }
}

}  // namespace
}  // namespace orthant::test
