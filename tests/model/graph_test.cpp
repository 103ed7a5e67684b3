#include "tests/model/message.hpp"

#include "orthant/model/graph.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace orthant::model {
namespace {

const Loss mse{.terms = {{.kind = LossKind::mean_squared_error}}};
const Loss labels{.terms = {{.kind = LossKind::cross_entropy}}};

GraphBuilder volume() { return {"net", 3, {2, 4, 8, 8, 8}}; }
GraphBuilder image() { return {"net", 2, {2, 3, 1, 8, 8}}; }

TEST(GraphBuilder, ReadsTheLastNodeUnlessToldOtherwise) {
  GraphBuilder builder = volume();
  const int first = builder.add("a", Activation{ActivationKind::relu});
  const int second = builder.add("b", Activation{ActivationKind::tanh});
  builder.add("sum", Add{}, {first, second});
  const Graph graph = builder.finish(mse);

  EXPECT_EQ(graph.nodes.front().name, "input");
  EXPECT_EQ(graph.nodes[1].srcs, std::vector<int>{0});
  EXPECT_EQ(graph.nodes[2].srcs, std::vector<int>{1});
  EXPECT_EQ(graph.nodes[3].srcs, (std::vector<int>{1, 2}));
  EXPECT_EQ(graph.nodes[3].shape, (tensor::Shape{2, 4, 8, 8, 8}));
  EXPECT_EQ(graph.loss, mse);
}

TEST(GraphBuilder, NamesGraphAndNodeInErrors) {
  GraphBuilder builder = volume();

  EXPECT_EQ(
      message_of([&] { builder.add("layer1.0.conv1", Conv{.window = {.size = tensor::cube(9)}}); }),
      "65: net: layer1.0.conv1: the kernel reaches over 9 cells in dim d but the padded input has 8; use a smaller "
      "kernel, more padding or a larger input");
}

TEST(GraphBuilder, RefusesBadNames) {
  GraphBuilder builder = volume();
  builder.add("a", Softmax{});

  EXPECT_EQ(message_of([&] { builder.add("a", Softmax{}); }),
            "65: net: a: a second layer of this name; names must be unique");
  EXPECT_EQ(message_of([&] { builder.add("input", Softmax{}); }),
            "65: net: input: a second layer of this name; names must be unique");
  EXPECT_EQ(message_of([&] { builder.add("", Softmax{}); }), "65: net: : an empty name; give every layer one");
  EXPECT_EQ(message_of([&] { builder.add("a\nb", Softmax{}); }),
            "65: net: a?b: a name with other characters than letters, digits, '_', '-' and '.'; rename it");
  EXPECT_EQ(message_of([&] { builder.add(std::string(201, 'a'), Softmax{}); }),
            "65: net: " + std::string(200, 'a') + ": a name of 201 characters; at most 200 are supported");
  EXPECT_EQ(message_of([] { GraphBuilder("", 3, {}); }), "65: the network has an empty name; give every layer one");
}

TEST(GraphBuilder, KeepsNetworksOfOneDimFlat) {
  GraphBuilder builder("net", 1, {2, 4, 1, 1, 8});
  EXPECT_EQ(message_of([&] { builder.add("pool", Pool{.window = {.size = tensor::square(2)}}); }),
            "65: net: pool: a window with height in a 1-D network; its size, stride and dilation must be 1 and its "
            "padding 0 in dim h");
  EXPECT_EQ(message_of([&] {
              builder.add("up", PixelShuffle{.factor = {1, 2, 1}});
            }),
            "65: net: up: it makes 2 cells in dim h of a 1-D network; leave h as it is");
  EXPECT_EQ(message_of([] {
              GraphBuilder("net", 1, {2, 4, 1, 3, 8});
            }),
            "65: net: input: height 3 in a 1-D network; it takes CxW");
}

TEST(GraphBuilder, RefusesBadInputs) {
  EXPECT_EQ(message_of([] { GraphBuilder("net", 4, {}); }), "65: net: 4 spatial dims; 1 to 3 are supported");
  EXPECT_EQ(message_of([] {
              GraphBuilder("net", 3, {1, 0, 1, 1, 1});
            }),
            "65: net: input: 0 items in dim c; at least 1 is needed");
  EXPECT_EQ(message_of([] {
              GraphBuilder("net", 2, {1, 3, 2, 8, 8});
            }),
            "65: net: input: depth 2 in a 2-D network; it takes CxHxW");
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(message_of([&] {
              GraphBuilder("net", 3, {1, huge, 1, 1, 1});
            }),
            "65: net: input: size 9223372036854775807 x 4 overflows 64 bits; use smaller sizes");
}

TEST(GraphBuilder, RefusesSizesThatOverflow) {
  GraphBuilder builder("net", 3, {1, 1, 1 << 20, 1 << 20, 1});

  EXPECT_EQ(message_of([&] { builder.add("conv", Conv{.filters = std::int64_t{1} << 40}); }),
            "65: net: conv: size 2199023255552 x 1099511627776 overflows 64 bits; use smaller sizes");
}

TEST(GraphBuilder, RefusesSourcesThatAreNotThere) {
  GraphBuilder builder = volume();

  EXPECT_EQ(message_of([&] { builder.add("a", Softmax{}, {1}); }),
            "65: net: a: reads node 1, which does not come before it");
  EXPECT_EQ(message_of([&] { builder.add("b", Softmax{}, {-1}); }),
            "65: net: b: reads node -1, which does not come before it");
}

TEST(GraphBuilder, RefusesDepthInTwoDimensionalNetworks) {
  GraphBuilder builder = image();
  const tensor::Window deep{.size = {1, 3, 3}, .stride = {2, 1, 1}};

  EXPECT_EQ(message_of([&] { builder.add("pool", Pool{.window = deep}); }),
            "65: net: pool: a window with depth in a 2-D network; its size, stride and dilation must be 1 and its "
            "padding 0 in dim d");
}

TEST(GraphBuilder, RefusesNodesThatNobodyReads) {
  GraphBuilder builder = volume();
  builder.add("a", Softmax{});
  builder.add("b", Softmax{}, {0});

  EXPECT_EQ(message_of([&] { builder.finish(mse); }),
            "65: net: a: no layer reads it, and only the last layer is the output; remove it or read it");
  EXPECT_EQ(message_of([] { volume().finish(mse); }), "65: net: it has no layers; add at least one");
}

TEST(GraphBuilder, ChecksTheLossAgainstTheOutput) {
  const auto finish = [](std::int64_t channels, const Loss& loss) {
    return message_of([&] {
      GraphBuilder builder = volume();
      builder.add("conv", Conv{.filters = channels});
      builder.finish(loss);
    });
  };
  const Loss mixed{.terms = {{.kind = LossKind::mean_squared_error}, {.kind = LossKind::soft_dice}}};
  const Loss infinite{.terms = {{.weight = std::numeric_limits<double>::infinity()}}};

  EXPECT_EQ(finish(1, mse), "nothing");
  EXPECT_EQ(finish(2, labels), "nothing");
  EXPECT_EQ(finish(1, labels),
            "65: net: loss: cross_entropy needs an output of at least 2 channels, one per class, but it has 1");
  EXPECT_EQ(finish(2, Loss{}), "65: net: loss: there is no loss; give at least one term");
  EXPECT_EQ(finish(2, mixed),
            "65: net: loss: mean_squared_error takes values and soft_dice takes labels; all terms must take the same");
  EXPECT_EQ(finish(2, infinite), "65: net: loss: the weight of mean_squared_error is inf; it must be a finite number");
}

TEST(TargetShape, HasOneChannelOfLabelsOrTheOutputsShape) {
  GraphBuilder one = volume();
  one.add("conv", Conv{.filters = 3});
  GraphBuilder two = one;

  EXPECT_EQ(target_shape(one.finish(labels)), (tensor::Shape{2, 1, 8, 8, 8}));
  EXPECT_EQ(target_shape(two.finish(mse)), (tensor::Shape{2, 3, 8, 8, 8}));
}

}  // namespace
}  // namespace orthant::model
