#include "orthant/model/work.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

TEST(Work, AddsUpOverNodes) {
  GraphBuilder builder("net", 3, {2, 4, 8, 8, 8});
  builder.add("conv", Conv{.filters = 6, .window = {.size = tensor::cube(2), .stride = tensor::cube(2)}, .groups = 2});
  builder.add(
      "up", ConvTranspose{.filters = 3, .window = {.size = tensor::cube(2), .stride = tensor::cube(2)}, .bias = false});
  builder.add("flatten", Flatten{});
  builder.add("fc", Dense{.features = 5});
  const GraphWork work = work_of(builder.finish({.terms = {{}}}));

  const std::int64_t conv = 2LL * 2 * 4 * 4 * 4 * 6 * 8 * 2;
  const std::int64_t up = 2LL * 2 * 4 * 4 * 4 * 6 * 8 * 3;  // every source item meets every tap
  const std::int64_t dense = 2LL * 2 * 3 * 512 * 5;
  EXPECT_EQ(work.nodes[1].flops, conv);
  EXPECT_EQ(work.nodes[2].flops, up);
  EXPECT_EQ(work.nodes[4].flops, dense);
  EXPECT_EQ(work.forward_flops, conv + up + dense);
  EXPECT_EQ(work.conv_flops, 3 * (conv + up));
  EXPECT_EQ(work.nodes[1].parameters, 6 * 2 * 8 + 6);
  EXPECT_EQ(work.parameters, 6 * 2 * 8 + 6 + 6 * 3 * 8 + 3 * 512 * 5 + 5);
  EXPECT_EQ(work.activation_bytes, 4 * 2 * (4 * 512 + 6 * 64 + 3 * 512 + 3 * 512 + 5));
}

}  // namespace
}  // namespace orthant::model
