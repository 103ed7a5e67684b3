#include "orthant/kernels/conv.hpp"
#include "tests/kernels/shape_list.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/layouts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace orthant::test {
namespace {

using model::Activation;
using model::ActivationKind;
using model::ConvTask;
using model::Pass;

/// Every way to run the task with errors of a class.
Make candidates(const ConvTask& task, model::ErrorClass errors) {
  return [task, errors](int threads) {
    std::vector<std::unique_ptr<kernels::Primitive>> all;
    for (kernels::ConvCandidate& candidate : kernels::conv_candidates(task, threads, errors)) {
      if (model::error_class(candidate.algorithm) == errors) all.push_back(std::move(candidate.primitive));
    }
    return all;
  };
}

/// How src and dst lie.
struct Rooms {
  Room src = Room::none, dst = Room::none;
};

ConvTask task_of(const ShapeLine& line, Pass pass, bool bias, Rooms rooms = {}) {
  return {.pass = pass,
          .window = line.window,
          .groups = line.g,
          .bias = bias,
          .activation = {},
          .src = layout_with(rooms.src, src_shape(line)),
          .dst = layout_with(rooms.dst, dst_shape(line))};
}

void expect_right(const ShapeLine& line, const ConvTask& task) {
  std::vector<int> nulls;
  if (!task.bias && task.pass == Pass::forward) nulls.push_back(static_cast<int>(kernels::at::conv_forward::bias));
  if (!task.bias && task.pass == Pass::backward_weights)
    nulls.push_back(static_cast<int>(kernels::at::conv_backward_weights::diff_bias));
  EXPECT_EQ(check({.task = task, .nulls = nulls, .shared = {}}, candidates(task, model::ErrorClass::exact),
                  candidates(task, model::ErrorClass::fast)),
            "")
      << line.text << (task.bias ? " with bias" : "") << " and " << model::name_of(task.activation.kind)
      << (tensor::is_dense(task.src) ? "" : ", src strided") << (tensor::is_dense(task.dst) ? "" : ", dst strided")
      << (task.accumulate ? ", added" : "") << ", dst " << tensor::to_text(task.dst.extents);
}

class ConvTasks : public testing::Test {
 protected:
  const std::vector<ShapeLine> lines_ = read_shapes(ORTHANT_SHAPES "/conv_shapes.txt");
  const std::array<Activation, 5> activations_{
      Activation{.kind = ActivationKind::relu}, Activation{.kind = ActivationKind::leaky_relu, .slope = 0.25},
      Activation{.kind = ActivationKind::tanh}, Activation{.kind = ActivationKind::sigmoid},
      Activation{.kind = ActivationKind::identity}};
  const std::array<Rooms, 7> rooms_{Rooms{Room::channels, Room::channels}, Rooms{Room::halo, Room::none},
                                    Rooms{Room::none, Room::halo},         Rooms{Room::halo, Room::halo},
                                    Rooms{Room::both, Room::channels},     Rooms{Room::none, Room::both},
                                    Rooms{Room::both, Room::both}};

  /// All of the variants if `make test-long` asks for more, else one: the next for every line.
  template <class Variants>
  static std::vector<typename Variants::value_type> some_of(const Variants& variants, std::size_t line) {
    if (std::getenv("ORTHANT_TEST_FACTOR")) return {variants.begin(), variants.end()};
    return {variants[line % variants.size()]};
  }
};

TEST_F(ConvTasks, ListIsLong) { EXPECT_GE(lines_.size(), 200U); }

TEST_F(ConvTasks, ForwardIsRight) {
  for (const ShapeLine& line : lines_) expect_right(line, task_of(line, Pass::forward, false));
}

TEST_F(ConvTasks, ForwardWithBiasAndActivationIsRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    ConvTask task = task_of(line, Pass::forward, true);
    for (const Activation& activation : some_of(activations_, index++)) {
      task.activation = activation;
      expect_right(line, task);
    }
  }
}

TEST_F(ConvTasks, BackwardDataIsRight) {
  for (const ShapeLine& line : lines_) expect_right(line, task_of(line, Pass::backward_data, false));
}

TEST_F(ConvTasks, BackwardWeightsIsRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    for (const bool bias : some_of(std::vector{true, false}, index++))
      expect_right(line, task_of(line, Pass::backward_weights, bias));
  }
}

TEST_F(ConvTasks, StridedBoxesAreRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    for (const Rooms& rooms : some_of(rooms_, index++)) {
      expect_right(line, task_of(line, Pass::forward, true, rooms));
      expect_right(line, task_of(line, Pass::backward_data, false, rooms));
      expect_right(line, task_of(line, Pass::backward_weights, true, rooms));
    }
  }
}

TEST_F(ConvTasks, GradientsOfWeightsAreAdded) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    ConvTask task = task_of(line, Pass::backward_weights, true);
    task.accumulate = true;
    expect_right(line, task);
    task = task_of(line, Pass::backward_weights, false, rooms_[index++ % rooms_.size()]);
    task.accumulate = true;
    expect_right(line, task);
  }
}

/// What is left of a convolution on one rank: dst is not what src and the window would give.
TEST_F(ConvTasks, LocalPartsAreRight) {
  std::size_t index = 0;
  for (const ShapeLine& line : lines_) {
    const Rooms rooms = index % 2 == 0 ? Rooms{} : rooms_[index % rooms_.size()];
    tensor::Shape src = src_shape(line), dst = dst_shape(line);
    tensor::Window window = line.window;
    window.pad_hi = tensor::cube(index % 3 == 0 ? 0 : 9);
    for (const tensor::Dim dim : tensor::spatial_dims) {
      const std::size_t how = index++ % 5;
      if (how == 0) src[dim] += 2;
      if (how == 1 && dst[dim] > 1) --dst[dim];
      if (how == 2) ++window.pad_lo[dim];
      if (how == 3) dst[dim] += 1;
    }
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
      ConvTask task = task_of(line, pass, pass != Pass::backward_data, rooms);
      task.window = window;
      task.src = layout_with(rooms.src, src);
      task.dst = layout_with(rooms.dst, dst);
      expect_right(line, task);
    }
  }
}

/// A rank may own nothing of dst; the gradients that it still writes are zero.
TEST_F(ConvTasks, NothingIsRight) {
  for (const ShapeLine& line : {lines_.front(), lines_[100], lines_.back()}) {
    for (const tensor::Dim dim : {tensor::Dim::n, tensor::Dim::d, tensor::Dim::w}) {
      for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        ConvTask task = task_of(line, pass, pass != Pass::backward_data);
        task.dst.extents[dim] = 0;
        if (dim == tensor::Dim::n) task.src.extents.n = 0;
        expect_right(line, task);
      }
    }
  }
}

/// Views are never copied for oneDNN, and dense tensors of three taps have all our ways.
TEST_F(ConvTasks, ViewsHaveOurOwnKernels) {
  const tensor::Shape shape{.n = 1, .c = 16, .d = 4, .h = 6, .w = 6};
  const tensor::Window window{.size = tensor::cube(3), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
    for (const Rooms& rooms : rooms_) {
      const ConvTask task{
          .pass = pass, .window = window, .src = layout_with(rooms.src, shape), .dst = layout_with(rooms.dst, shape)};
      std::vector<std::string> names;
      for (const auto& candidate : kernels::conv_candidates(task, 1))
        names.emplace_back(model::name_of(candidate.algorithm));
      std::sort(names.begin(), names.end());
      std::vector<std::string> expected{"direct", "winograd"};
      if (pass == Pass::backward_weights) expected = {"direct", "matrix", "winograd"};
      EXPECT_EQ(names, expected);
    }
  }
}

}  // namespace
}  // namespace orthant::test
