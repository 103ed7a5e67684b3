#include "orthant/model/signature.hpp"

#include "orthant/model/arguments.hpp"

#include <gtest/gtest.h>

#include <unordered_set>

namespace orthant::model {
namespace {

using tensor::channels_last;

ConvTask conv() {
  return {.window = {.size = tensor::cube(3), .pad_lo = tensor::cube(1)},
          .bias = true,
          .src = channels_last({1, 4, 8, 8, 8}),
          .dst = channels_last({1, 6, 8, 8, 8})};
}

// The cache of choices on users' machines has this text, followed by the number of threads.
TEST(Signature, OfAConvolutionIsTheTextThatCachesHave) {
  ConvTask task = conv();
  EXPECT_EQ(signature(task).text,
            "forward identity src 1x4x8x8x8 dst 1x6x8x8x8 window 3x3x3 stride 1x1x1 dilation 1x1x1 pad 1x1x1 groups 1 "
            "bias");
  task.pass = Pass::backward_weights;
  task.accumulate = true;
  task.groups = 2;
  task.src.strides.n = 9999;
  task.src.extents.n = task.dst.extents.n = 2;
  EXPECT_EQ(signature(task).text,
            "backward_weights identity src 2x4x8x8x8 steps 9999x1x256x32x4 dst 2x6x8x8x8 window 3x3x3 stride 1x1x1 "
            "dilation 1x1x1 pad 1x1x1 groups 2 bias accumulate");
}

TEST(Signature, LeavesOutWhatDoesNotMatter) {
  ConvTask task = conv();
  task.src.offset = 64;
  task.algorithm = Algorithm::direct;
  EXPECT_EQ(signature(task), signature(conv()));

  const tensor::Layout layout = channels_last({1, 4, 8, 8, 8});
  EXPECT_EQ(signature(DropoutTask{.rate = 0.1, .layer = 3, .src = layout, .dst = layout}),
            signature(DropoutTask{.rate = 0.2, .layer = 4, .src = layout, .dst = layout}));
  EXPECT_EQ(signature(CopyTask{.factor = 2, .src = layout, .dst = layout}),
            signature(CopyTask{.factor = 3, .src = layout, .dst = layout}));
}

TEST(Signature, TellsTasksApart) {
  const tensor::Layout layout = channels_last({1, 4, 8, 8, 8});
  const tensor::Layout turned = tensor::channels_first({1, 4, 8, 8, 8});
  const std::vector<Task> tasks{
      conv(),
      DenseTask{},
      DenseTask{.bias = true},
      PoolTask{.src = layout, .dst = layout},
      PoolTask{.kind = PoolKind::average, .src = layout, .dst = layout},
      PoolTask{.kind = PoolKind::average, .count_include_pad = false, .src = layout, .dst = layout},
      ConvTask{.src = layout, .dst = layout, .prepared_bytes = 64},
      PrepareWeightsTask{ConvTask{.src = layout, .dst = layout, .prepared_bytes = 64}},
      NormSumsTask{.x = layout},
      NormSumsTask{.pass = Pass::backward_data, .x = layout},
      NormSumsTask{.pass = Pass::backward_data, .x = layout, .diff_y2 = layout},
      NormTask{.x = layout},
      NormTask{.training = false, .x = layout},
      NormTask{.residual = true, .x = layout},
      ActivationTask{.src = layout, .dst = layout},
      ActivationTask{.activation = {.kind = ActivationKind::tanh}, .src = layout, .dst = layout},
      SoftmaxTask{.src = layout, .dst = layout},
      CopyTask{.src = layout, .dst = layout},
      CopyTask{.src = layout, .dst = turned},
      CopyTask{.accumulate = true, .src = layout, .dst = layout},
      CopyTask{.factor = 2, .src = layout, .dst = layout},
      FillTask{.dst = layout},
      AddTask{.a = layout, .b = layout, .dst = layout},
      DropoutTask{.src = layout, .dst = layout},
      BiasGradientTask{.dst = layout},
      LossSumsTask{.loss = {.terms = {{}}}, .output = layout},
      LossTask{.loss = {.terms = {{}}}, .output = layout},
      LossTask{.loss = {.terms = {{}, {.kind = LossKind::mean_absolute_error}}}, .output = layout},
      CopyPiecesTask{.pieces = {{layout, layout}}},
      CopyPiecesTask{.pieces = {{layout, turned}}},
      CopyPiecesTask{.pieces = {{layout, layout}, {layout, layout}}},
      CopyPiecesTask{.accumulate = true, .pieces = {{layout, layout}}},
      UpdateTask{.count = 3, .kept = 1},
      UpdateTask{.count = 3},
      UpdateTask{.optimizer = {.momentum = 0.9}, .count = 3},
      UpdateTask{.count = 3, .arrived = 1},
  };
  std::unordered_set<Signature> signatures;
  for (const Task& task : tasks)
    EXPECT_TRUE(signatures.insert(signature(task)).second) << signature(task).text << " is there twice";
}

}  // namespace
}  // namespace orthant::model
