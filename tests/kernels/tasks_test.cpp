#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orthant::test {
namespace {

using model::Activation;
using model::ActivationKind;
using model::Pass;

const std::vector<Room> rooms{Room::none, Room::channels, Room::halo, Room::both};
const std::vector<Activation> activations{
    {.kind = ActivationKind::identity},
    {.kind = ActivationKind::relu},
    {.kind = ActivationKind::leaky_relu, .slope = 0.25},
    {.kind = ActivationKind::tanh},
    {.kind = ActivationKind::sigmoid},
};
/// Those above, and one of the others in turn: these are applied by a kernel of their own, or by a normalisation.
std::vector<Activation> some_activations(std::size_t index) {
  constexpr std::array others{ActivationKind::relu6, ActivationKind::hard_sigmoid, ActivationKind::elu,
                              ActivationKind::silu,  ActivationKind::gelu,         ActivationKind::hard_swish};
  std::vector<Activation> all = activations;
  all.push_back({.kind = others[index % others.size()], .slope = 0.75});
  return all;
}

/// Dense, and one of the others in turn: the rooms that the index-th case runs in.
std::vector<Room> some_rooms(std::size_t index) { return {Room::none, rooms[1 + index % 3]}; }

std::vector<ShapeLine> tensors() { return read_shapes(ORTHANT_SHAPES "/tensor_shapes.txt"); }

void expect_right(const ShapeLine& line, model::DenseTask task) {
  EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "") << line.text;
  task.bias = true;
  for (const Activation& activation : activations) {
    task.activation = activation;
    EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << model::name_of(activation.kind);
  }
  task.activation = {};
  task.pass = Pass::backward_weights;
  for (const bool accumulate : {false, true}) {
    task.accumulate = accumulate;
    task.bias = true;
    EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " backward_weights with bias";
    task.bias = false;
    EXPECT_EQ(check({.task = task, .nulls = {3}, .shared = {}}), "") << line.text << " backward_weights";
  }
  task.pass = Pass::backward_data;
  EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " backward_data";
}

TEST(DenseTasks, AreRight) {
  const std::vector<std::pair<Room, Room>> pairs{
      {Room::none, Room::none}, {Room::channels, Room::none}, {Room::halo, Room::channels}, {Room::none, Room::both}};
  for (const ShapeLine& line : read_shapes(ORTHANT_SHAPES "/dense_shapes.txt")) {
    for (const auto& [src, dst] : pairs) {
      model::DenseTask task;
      task.src = layout_with(src, src_shape(line));
      task.dst = layout_with(dst, dst_shape(line));
      expect_right(line, task);
    }
  }
}

/// A rank without samples has gradients of zero.
TEST(DenseTasks, WithoutSamplesAreRight) {
  model::DenseTask task;
  task.src = tensor::channels_last({.n = 0, .c = 20});
  task.dst = tensor::channels_last({.n = 0, .c = 7});
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
    task.pass = pass;
    EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "");
  }
}

TEST(ActivationTasks, ForwardIsRight) {
  std::size_t turn = 0;
  std::size_t index = 0;
  for (const ShapeLine& line : tensors()) {
    for (const Activation& activation : some_activations(turn++)) {
      for (const Room room : some_rooms(index++)) {
        model::ActivationTask task{.activation = activation};
        task.src = task.dst = layout_with(room, src_shape(line));
        const std::string what = line.text + model::name_of(activation.kind);
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << what << " with bias";
        EXPECT_EQ(check({.task = task, .nulls = {1}, .shared = {{2, 0}}}), "") << what << " in place";
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{2, 0}}}), "") << what << " with bias, in place";
        task.dst = layout_with(Room::none, src_shape(line));
        EXPECT_EQ(check({.task = task, .nulls = {1}, .shared = {}}), "") << what << " to dense";
      }
    }
  }
}

TEST(ActivationTasks, BackwardIsRight) {
  std::size_t turn = 0;
  constexpr int diff_dst = 0, diff_dst2 = 1, y = 2, diff_src = 3;
  std::size_t index = 0;
  for (const ShapeLine& line : tensors()) {
    for (const Activation& activation : some_activations(turn++)) {
      for (const Room room : some_rooms(index++)) {
        model::ActivationTask task{.pass = Pass::backward_data, .activation = activation};
        task.src = task.dst = task.second = layout_with(room, src_shape(line));
        const std::string what = line.text + model::name_of(activation.kind);
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << what << " with two gradients";
        EXPECT_EQ(check({.task = task, .nulls = {diff_dst2}, .shared = {{diff_src, y}}}), "") << what << " over y";
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{diff_src, diff_dst}}}), "") << what << " over diff_dst";
        task.second = layout_with(Room::channels, src_shape(line));
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << what << " with a strided second";
      }
    }
  }
}

TEST(SoftmaxTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      model::SoftmaxTask task;
      task.src = layout_with(room, src_shape(line));
      task.dst = layout_with(room == Room::both ? Room::none : room, src_shape(line));
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
      std::swap(task.src, task.dst);
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " swapped";
      task.pass = Pass::backward_data;
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " backward";
    }
  }
}

TEST(CopyTasks, AreRight) {
  const std::vector<std::pair<double, bool>> uses{{1, false}, {-0.5, true}, {0.3, false}, {1, true}, {-0.5, false}};
  std::size_t index = 0;
  for (const ShapeLine& line : tensors()) {
    const tensor::Layout first = tensor::channels_first(src_shape(line));
    std::vector<std::pair<tensor::Layout, tensor::Layout>> walks;
    for (const Room room : rooms) {
      const tensor::Layout roomy = layout_with(room, src_shape(line));
      walks.insert(walks.end(), {{roomy, tensor::channels_last(src_shape(line))},
                                 {tensor::channels_last(src_shape(line)), roomy},
                                 {roomy, first},
                                 {first, roomy}});
    }
    for (const auto& [src, dst] : walks) {
      const auto [factor, accumulate] = uses[index++ % uses.size()];
      const model::CopyTask task{.factor = factor, .accumulate = accumulate, .src = src, .dst = dst};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "")
          << line.text << " times " << factor << (accumulate ? " added" : "");
    }
  }
}

TEST(CopyTasks, AddAnOffset) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      const model::CopyTask task{.factor = -0.5,
                                 .offset = 3,
                                 .src = layout_with(room, src_shape(line)),
                                 .dst = tensor::channels_last(src_shape(line))};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
      model::CopyTask permuting = task;
      permuting.dst = tensor::channels_first(src_shape(line));
      EXPECT_EQ(check({.task = permuting, .nulls = {}, .shared = {}}), "") << line.text << " to channels first";
    }
  }
}

// Every second channel of one side, and blocks of cells that become channels.
TEST(CopyPiecesTasks, WithStepsAreRight) {
  for (const ShapeLine& line : tensors()) {
    tensor::Shape blocks = src_shape(line);
    const tensor::Layout coarse = layout_with(Room::none, {blocks.n, 2 * blocks.c, blocks.d, blocks.h, blocks.w});
    const tensor::Layout fine = layout_with(Room::halo, {blocks.n, blocks.c, blocks.d, blocks.h, 2 * blocks.w});
    model::CopyPiecesTask up;
    for (const std::int64_t place : {0, 1}) {
      model::CopyPiecesTask::Piece piece{.src = coarse, .dst = fine};
      piece.src.offset += place;
      piece.src.strides.c = 2;
      piece.src.extents = piece.dst.extents = blocks;
      piece.dst.offset += place * fine.strides.w;
      piece.dst.strides.w *= 2;
      up.pieces.push_back(piece);
    }
    EXPECT_EQ(check({.task = up, .nulls = {}, .shared = {}}), "") << line.text << " to cells";
    model::CopyPiecesTask down = up;
    for (model::CopyPiecesTask::Piece& piece : down.pieces) std::swap(piece.src, piece.dst);
    EXPECT_EQ(check({.task = down, .nulls = {}, .shared = {}}), "") << line.text << " to channels";
  }
}

/// The peaks of a whole tensor, and of a part of one.
TEST(PeaksTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    const tensor::Shape extents = src_shape(line);
    for (const Room room : rooms) {
      model::PeaksTask task{.global_src = tensor::spatial(extents), .src = layout_with(room, extents)};
      task.dst = tensor::channels_last({extents.n, extents.c, 1, 1, model::peak_numbers});
      for (const bool part : {false, true}) {
        task.pass = Pass::forward;
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
        task.pass = Pass::backward_data;
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " backward";
        task.first_src = {part ? 0 : 3, 1, 2};
        for (const tensor::Dim dim : tensor::spatial_dims) task.global_src[dim] += 5;
        task.diff_dst = layout_with(Room::both, task.dst.extents);
      }
    }
  }
}

TEST(PeaksTasks, CountPlacesBeyondWhatFloatsCount) {
  const tensor::Shape extents{1, 2, 2, 2, 3};
  model::PeaksTask task{.global_src = {700, 800, 900}, .first_src = {698, 5, 7}};
  task.src = tensor::channels_last(extents);
  task.dst = tensor::channels_last({1, 2, 1, 1, model::peak_numbers});
  EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "");
}

TEST(HighestPeakTasks, AreRight) {
  for (const tensor::Shape& parts :
       {tensor::Shape{1, 1, 1, 1, 1}, {2, 3, 1, 1, 1}, {1, 5, 2, 3, 1}, {3, 17, 1, 2, 4}}) {
    const tensor::Shape peaks{parts.n, parts.c, parts.d, parts.h, parts.w * model::peak_numbers};
    for (const Room room : rooms) {
      model::HighestPeakTask task{.src = layout_with(room, peaks),
                                  .dst = layout_with(room, {parts.n, parts.c, 1, 1, 1})};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << tensor::to_text(parts);
      task.pass = Pass::backward_data;
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << tensor::to_text(parts) << " backward";
      task.diff_src = tensor::channels_last(peaks);
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << tensor::to_text(parts) << " to another layout";
    }
  }
}

// Pieces of two tensors, packed side by side or added from there.
TEST(CopyPiecesTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      const tensor::Layout roomy = layout_with(room, src_shape(line));
      tensor::Layout first = tensor::channels_last(src_shape(line));
      tensor::Layout second = first;
      second.offset = tensor::volume(first.extents) + 3;
      const model::CopyPiecesTask packing{.pieces = {{roomy, second}, {roomy, first}}};
      EXPECT_EQ(check({.task = packing, .nulls = {}, .shared = {}}), "") << line.text;
      const model::CopyPiecesTask adding{.accumulate = true, .pieces = {{first, roomy}, {second, roomy}}};
      EXPECT_EQ(check({.task = adding, .nulls = {}, .shared = {}}), "") << line.text << " added";
    }
  }
}

TEST(FillTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      const model::FillTask task{.dst = layout_with(room, src_shape(line))};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
    }
  }
}

TEST(AddTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      const tensor::Layout roomy = layout_with(room, src_shape(line)), dense = tensor::channels_last(src_shape(line));
      const Case apart{.task = model::AddTask{.a = roomy, .b = dense, .dst = dense}, .nulls = {}, .shared = {}};
      EXPECT_EQ(check(apart), "") << line.text;
      const Case over_a{.task = model::AddTask{.a = roomy, .b = dense, .dst = roomy}, .nulls = {}, .shared = {{2, 0}}};
      EXPECT_EQ(check(over_a), "") << line.text << " over a";
      const Case over_b{.task = model::AddTask{.a = dense, .b = roomy, .dst = roomy}, .nulls = {}, .shared = {{2, 1}}};
      EXPECT_EQ(check(over_b), "") << line.text << " over b";
    }
  }
}

TEST(DropoutTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      for (const double rate : {0.0, 0.5, 0.8}) {
        model::DropoutTask task{
            .rate = rate, .layer = 7, .global = src_shape(line), .box = tensor::whole(src_shape(line))};
        task.src = task.dst = layout_with(room, src_shape(line));
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " at " << rate;
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{1, 0}}}), "")
            << line.text << " at " << rate << " in place";
        task.dst = layout_with(room == Room::halo ? Room::none : Room::halo, src_shape(line));
        for (const tensor::Dim dim : tensor::all_dims) {
          task.global[dim] += 5;
          task.box.lo[dim] += 2;
          task.box.hi[dim] += 2;
        }
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "")
            << line.text << " at " << rate << ", part of a tensor";
      }
    }
  }
}

TEST(BiasGradientTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      model::BiasGradientTask task{.dst = layout_with(room, src_shape(line))};
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
      task.accumulate = true;
      EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " added";
    }
  }
}

TEST(PReluTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    for (const Room room : rooms) {
      for (const bool shared : {false, true}) {
        model::PReluTask task{.shared = shared};
        task.src = layout_with(room, src_shape(line));
        task.dst = task.diff_src = layout_with(Room::none, src_shape(line));
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text;
        task.pass = Pass::backward_data;
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {{3, 0}}}), "") << line.text << " over diff_dst";
        task.accumulate = true;
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " added";
      }
    }
  }
}

/// The shapes that the second factor of a product may have.
std::vector<tensor::Shape> factors_of(const tensor::Shape& all) {
  return {all, {all.n, all.c, 1, 1, 1}, {all.n, 1, all.d, all.h, all.w}, {all.n, 1, 1, 1, 1}, {1, all.c, 1, 1, 1}};
}

TEST(ProductTasks, AreRight) {
  for (const ShapeLine& line : tensors()) {
    const tensor::Layout dense = tensor::channels_last(src_shape(line));
    for (const Room room : rooms) {
      const tensor::Layout roomy = layout_with(room, src_shape(line));
      for (const tensor::Shape& factor : factors_of(src_shape(line))) {
        const tensor::Layout b = layout_with(room, factor);
        const model::ProductTask task{.a = roomy, .b = b, .dst = dense};
        EXPECT_EQ(check({.task = task, .nulls = {2}, .shared = {}}), "") << line.text << " by " << to_text(factor);
        if (factor == tensor::Shape{1, factor.c, 1, 1, 1}) {
          EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << line.text << " with bias";
        }
        const model::ProductTask over{.a = dense, .b = b, .dst = dense};
        EXPECT_EQ(check({.task = over, .nulls = {2}, .shared = {{3, 0}}}), "") << line.text << " over a";
        model::ProductSumsTask sums{.a = roomy, .b = dense, .dst = tensor::channels_last(factor)};
        EXPECT_EQ(check({.task = sums, .nulls = {}, .shared = {}}), "") << line.text << " summed";
        sums.accumulate = true;
        if (factor == tensor::Shape{1, factor.c, 1, 1, 1}) {
          EXPECT_EQ(check({.task = sums, .nulls = {}, .shared = {}}), "") << line.text << " summed and added";
        }
      }
    }
  }
}

TEST(RemapTasks, AreRight) {
  using Kind = tensor::AxisRule::Kind;
  const std::vector<std::array<tensor::AxisRule, 3>> uses{
      {{{.kind = Kind::nearest}, {.kind = Kind::nearest}, {.kind = Kind::nearest}}},
      {{{.kind = Kind::linear}, {.kind = Kind::linear}, {.kind = Kind::linear}}},
      {{{.kind = Kind::corners}, {.first = 0}, {.kind = Kind::corners}}},
      {{{.first = -1}, {.kind = Kind::edge, .first = -2}, {.first = -1}}},
      {{{.first = 0}, {.first = 0, .step = 2}, {.kind = Kind::edge, .first = 1}}}};
  for (const ShapeLine& line : tensors()) {
    const tensor::Shape from = src_shape(line);
    if (tensor::volume(from) > 20000) continue;
    const std::vector<tensor::Shape> sizes{{from.n, from.c, 2 * from.d, 2 * from.h, 2 * from.w},
                                           {from.n, from.c, from.d + 1, from.h, from.w + 2},
                                           {from.n, from.c, 1, from.h + 1, from.w / 2 + 1}};
    for (std::size_t use = 0; use < uses.size(); ++use) {
      for (const tensor::Shape& to : sizes) {
        model::RemapTask task{.src = layout_with(rooms[use % 4], from), .dst = layout_with(rooms[(use / 2) % 4], to)};
        for (std::size_t i = 0; i < 3; ++i) {
          const tensor::Dim dim = tensor::spatial_dims[i];
          task.axes[i] = model::axis_of(uses[use][i], {0, to[dim]}, {0, from[dim]}, from[dim], to[dim]);
        }
        const std::string what = line.text + " use " + std::to_string(use) + " to " + tensor::to_text(to);
        EXPECT_EQ(check({.task = task, .nulls = {}, .shared = {}}), "") << what;
        model::RemapTask back{.src = task.dst, .dst = task.src};
        for (std::size_t i = 0; i < 3; ++i) back.axes[i] = model::adjoint(task.axes[i], from[tensor::spatial_dims[i]]);
        EXPECT_EQ(check({.task = back, .nulls = {}, .shared = {}}), "") << what << ", adjoint";
      }
    }
  }
}

}  // namespace
}  // namespace orthant::test
