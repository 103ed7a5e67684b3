#include "tests/model/message.hpp"

#include "orthant/model/task.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

tensor::Window cube_of(std::int64_t size) { return {.size = tensor::cube(size)}; }

TEST(Flops, CountMultiplyAddsOfConvolutionsTwice) {
  ConvTask task{.window = cube_of(3),
                .src = tensor::channels_last({2, 4, 8, 8, 8}),
                .dst = tensor::channels_last({2, 16, 6, 6, 6})};
  const std::int64_t expected = 2LL * 2 * 6 * 6 * 6 * 16 * 27 * 4;

  EXPECT_EQ(flops(task), expected);
  task.pass = Pass::backward_weights;
  EXPECT_EQ(flops(task), expected);
  task.groups = 2;
  EXPECT_EQ(flops(task), expected / 2);
}

TEST(Flops, OfDenseLayersAndTheRest) {
  const DenseTask dense{.src = tensor::channels_last({3, 5, 1, 1, 1}), .dst = tensor::channels_last({3, 7, 1, 1, 1})};

  EXPECT_EQ(flops(dense), 2 * 3 * 5 * 7);
  EXPECT_EQ(flops(AddTask{}), 0);
}

TEST(ArgmaxBytes, GrowWithTheWindow) {
  EXPECT_EQ(argmax_bytes({.size = {1, 16, 16}}), 1);
  EXPECT_EQ(argmax_bytes({.size = {1, 1, 257}}), 2);
  EXPECT_EQ(argmax_bytes({.size = {1, 256, 256}}), 2);
  EXPECT_EQ(message_of([] {
              argmax_bytes({.size = {1, 1, 65537}});
            }),
            "65: a max_pool window of 65537 taps is not supported; at most 65536 are");
}

TEST(StateCount, IsWhatTheOptimizerKeeps) {
  EXPECT_EQ(state_count({.kind = OptimizerKind::sgd}), 0);
  EXPECT_EQ(state_count({.kind = OptimizerKind::sgd, .momentum = 0.9}), 1);
  EXPECT_EQ(state_count({.kind = OptimizerKind::adam}), 2);
  EXPECT_EQ(state_count({.kind = OptimizerKind::adamw}), 2);
}

}  // namespace
}  // namespace orthant::model
