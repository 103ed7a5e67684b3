#include "tests/model/message.hpp"

#include "orthant/model/graph.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orthant::model {
namespace {

using tensor::Shape;
using tensor::Window;

Window window(tensor::Extent3 size, tensor::Extent3 stride, tensor::Extent3 lo, tensor::Extent3 hi) {
  return {.size = size, .stride = stride, .pad_lo = lo, .pad_hi = hi};
}

constexpr Shape source{2, 6, 7, 8, 9};

struct Case {
  const char* what;
  Op op;
  std::vector<Shape> srcs;
  Shape dst;
};

TEST(InferShape, FollowsTheTable) {
  const tensor::Extent3 zero = tensor::cube(0);
  const tensor::Extent3 one = tensor::cube(1);
  const tensor::Extent3 two = tensor::cube(2);
  const tensor::Extent3 three = tensor::cube(3);
  const std::vector<Case> cases{
      {"conv", Conv{.filters = 5, .window = window(three, one, one, one)}, {source}, {2, 5, 7, 8, 9}},
      {"valid conv", Conv{.filters = 5, .window = window(three, one, zero, zero)}, {source}, {2, 5, 5, 6, 7}},
      {"strided conv", Conv{.filters = 5, .window = window(three, two, one, one)}, {source}, {2, 5, 4, 4, 5}},
      {"asymmetric pad", Conv{.filters = 5, .window = window(two, one, zero, one)}, {source}, {2, 5, 7, 8, 9}},
      {"odd kernel per dim",
       Conv{.filters = 5, .window = window({1, 3, 5}, {1, 2, 3}, zero, {0, 0, 2})},
       {source},
       {2, 5, 7, 3, 3}},
      {"dilated conv", Conv{.filters = 5, .window = {.size = three, .dilation = {3, 2, 1}}}, {source}, {2, 5, 1, 4, 7}},
      {"grouped conv", Conv{.filters = 4, .window = {}, .groups = 2}, {source}, {2, 4, 7, 8, 9}},
      {"transposed", ConvTranspose{.filters = 3, .window = window(two, two, zero, zero)}, {source}, {2, 3, 14, 16, 18}},
      {"transposed, padded",
       ConvTranspose{.filters = 3, .window = window(three, two, one, one), .output_padding = {0, 1, 1}},
       {source},
       {2, 3, 13, 16, 18}},
      {"max pool", Pool{.window = window(two, two, zero, zero)}, {source}, {2, 6, 3, 4, 4}},
      {"average pool",
       Pool{.kind = PoolKind::average, .window = window(three, two, one, one)},
       {source},
       {2, 6, 4, 4, 5}},
      {"global average pool", GlobalAveragePool{}, {source}, {2, 6, 1, 1, 1}},
      {"dense", Dense{.features = 10}, {{2, 6, 1, 1, 1}}, {2, 10, 1, 1, 1}},
      {"batch norm", BatchNorm{}, {source}, source},
      {"group norm", SampleNorm{.groups = 3}, {source}, source},
      {"prelu", PRelu{}, {source}, source},
      {"affine", Affine{}, {source}, source},
      {"product by channel", Multiply{}, {source, {2, 6, 1, 1, 1}}, source},
      {"product by pixel", Multiply{}, {source, {2, 1, 7, 8, 9}}, source},
      {"resize by factor", Resize{.factor = {0.5, 2, 1.2}}, {source}, {2, 6, 3, 16, 10}},
      {"resize to size", Resize{.mode = ResizeMode::linear, .size = {1, 2, 30}}, {source}, {2, 6, 1, 2, 30}},
      {"slice",
       Slice{.first_channel = 4, .first = {1, 0, 2}, .size = {2, 0, 0}, .step = {1, 3, 2}},
       {source},
       {2, 2, 2, 3, 4}},
      {"pad", Pad{.lo = {1, 2, 3}, .hi = {0, 0, 4}}, {source}, {2, 6, 8, 10, 16}},
      {"relu", Activation{ActivationKind::relu}, {source}, source},
      {"softmax", Softmax{}, {source}, source},
      {"scale", Scale{.factor = -2}, {source}, source},
      {"dropout", Dropout{.rate = 0}, {source}, source},
      {"add", Add{}, {source, source, source}, source},
      {"concat", Concat{}, {source, {2, 3, 7, 8, 9}}, {2, 9, 7, 8, 9}},
      {"flatten", Flatten{}, {source}, {2, 6 * 7 * 8 * 9, 1, 1, 1}},
  };
  for (const Case& c : cases) EXPECT_EQ(infer_shape(c.op, c.srcs), c.dst) << c.what;
}

struct Refusal {
  Op op;
  std::vector<Shape> srcs;
  const char* message;
};

TEST(InferShape, RefusesWithTheReason) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const std::vector<Refusal> refusals{
      {Input{}, {}, "a network has one input, its first node"},
      {Conv{.filters = 0}, {source}, "filters is 0; it must be at least 1"},
      {Conv{.filters = -4}, {source}, "filters is -4; it must be at least 1"},
      {Conv{.filters = 4, .groups = 0}, {source}, "groups is 0; it must be at least 1"},
      {Conv{.filters = 4, .groups = 4}, {source}, "6 source channels do not divide into 4 groups; use a divisor"},
      {Conv{.filters = 4, .groups = 3}, {source}, "4 filters do not divide into 3 groups; use a divisor"},
      {Conv{.window = {.size = {3, 0, 3}}}, {source}, "kernel size is 0 in dim h; it must be at least 1"},
      {Conv{.window = {.stride = {1, 1, 0}}}, {source}, "stride is 0 in dim w; it must be at least 1"},
      {Conv{.window = {.dilation = {-1, 1, 1}}}, {source}, "dilation is -1 in dim d; it must be at least 1"},
      {Conv{.window = {.pad_lo = {0, -1, 0}}}, {source}, "padding is -1 in dim h; it must be at least 0"},
      {Conv{.window = {.pad_hi = {huge, 0, 0}}},
       {source},
       "kernel, stride, dilation or padding is 9223372036854775807 in dim d; at most 2147483648 is supported"},
      {Conv{.window = {.size = {8, 1, 1}}},
       {source},
       "the kernel reaches over 8 cells in dim d but the padded input has 7; use a smaller kernel, more padding or a "
       "larger input"},
      {Conv{}, {source, source}, "conv reads 2 sources; it takes one"},
      {Conv{}, {{2, 6, 0, 8, 9}}, "the source has 0 items in dim d; at least 1 is needed"},
      {ConvTranspose{.output_padding = {0, 0, 1}},
       {source},
       "output_padding is 1 in dim w; it must be at least 0 and smaller than the stride, 1"},
      {ConvTranspose{.window = {.pad_lo = tensor::cube(9)}},
       {source},
       "the padding leaves no output in dim d; use less padding or a larger input"},
      {Pool{.window = window(tensor::cube(2), tensor::cube(1), tensor::cube(2), tensor::cube(0))},
       {source},
       "padding 2 in dim d lets a window of 2 taps (dilation 1) miss the 7 source cells; use less padding"},
      {Pool{.window = {.size = tensor::cube(41), .pad_lo = tensor::cube(40)}},
       {source},
       "a max_pool window of 68921 taps is not supported; at most 65536 are"},
      {Dense{.features = 3},
       {source},
       "dense takes vectors, but its source is 2x6x7x8x9; put a flatten or global_average_pool before it"},
      {Dense{.features = 0}, {{1, 1, 1, 1, 1}}, "features is 0; it must be at least 1"},
      {BatchNorm{.epsilon = 0}, {source}, "epsilon is 0; it must be above 0"},
      {BatchNorm{.momentum = 1.5}, {source}, "momentum is 1.5; it must be from 0 to 1"},
      {Activation{ActivationKind::leaky_relu, -0.1}, {source}, "slope is -0.1; it must be at least 0"},
      {Scale{.factor = nan}, {source}, "factor is nan; it must be a finite number"},
      {Dropout{.rate = 1}, {source}, "rate is 1; it must be at least 0 and below 1"},
      {Dropout{.rate = nan}, {source}, "rate is nan; it must be at least 0 and below 1"},
      {Add{}, {source}, "add reads 1 sources; it takes two or more"},
      {Add{}, {source, {2, 6, 7, 8, 8}}, "add takes sources of one shape, but has 2x6x7x8x9 and 2x6x7x8x8"},
      {Concat{},
       {source, {2, 6, 7, 8, 8}},
       "concat takes sources that differ in channels only, but has 2x6x7x8x9 and 2x6x7x8x8"},
      {Flatten{}, {{1, huge, 2, 1, 1}}, "size 9223372036854775807 x 2 overflows 64 bits; use smaller sizes"},
  };
  for (const Refusal& r : refusals) {
    EXPECT_EQ(message_of([&] { infer_shape(r.op, r.srcs); }), std::string("65: ") + r.message);
  }
}

TEST(InferShape, LeavesNoPoolingWindowInThePadding) {
  // Every accepted window has a tap inside; every refused one is refused for a window without.
  for (std::int64_t size = 1; size <= 4; ++size) {
    for (std::int64_t dilation = 1; dilation <= 4; ++dilation) {
      for (std::int64_t pad = 0; pad <= 5; ++pad) {
        for (std::int64_t extent = 1; extent <= 6; ++extent) {
          const Window w{
              .size = {1, 1, size}, .dilation = {1, 1, dilation}, .pad_lo = {0, 0, pad}, .pad_hi = {0, 0, pad}};
          Shape dst;
          if (message_of([&] { dst = infer_shape(Pool{.window = w}, {{1, 1, 1, 1, extent}}); }) != "nothing") continue;
          for (std::int64_t out = 0; out < dst.w; ++out) {
            bool inside = false;
            for (std::int64_t tap = 0; tap < size; ++tap) {
              const std::int64_t at = out - pad + tap * dilation;
              inside = inside || (at >= 0 && at < extent);
            }
            EXPECT_TRUE(inside) << size << ' ' << dilation << ' ' << pad << ' ' << extent << ' ' << out;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace orthant::model
