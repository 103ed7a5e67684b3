#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/onednn/call.hpp"
#include "tests/support/harness.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orthant::test {
namespace {

using kernels::onednn::make_conv;
using model::ConvTask;
using model::Pass;

ConvTask task_of(Pass pass, const tensor::Shape& src, std::int64_t filters, const tensor::Window& window) {
  const tensor::Extent3 dst = tensor::window_output(window, tensor::spatial(src));
  return {.pass = pass,
          .window = window,
          .groups = 1,
          .bias = false,
          .activation = {},
          .src = tensor::channels_last(src),
          .dst = tensor::channels_last({src.n, filters, dst.d, dst.h, dst.w})};
}

tensor::Window same(std::int64_t size) {
  tensor::Window window;
  window.size = tensor::cube(size);
  window.pad_lo = window.pad_hi = tensor::cube(size / 2);
  return window;
}

/// Whole numbers that are different for every place, so that a wrong order of the weights shows.
std::vector<float> numbers(std::int64_t count, int modulus) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 7) % modulus);
  return values;
}

TEST(OnednnConv, ReadsWeightsTapByTapWithFiltersFastest) {
  const ConvTask task = task_of(Pass::forward, {1, 16, 1, 1, 1}, 32, same(3));
  const auto conv = make_conv(task, 1);
  ASSERT_NE(conv, nullptr);
  std::vector<float> src(16, 0.0F), dst(32, -1.0F);
  std::vector<float> weights = numbers(std::int64_t{27} * 16 * 32, 8191);
  std::vector<std::byte> scratch(static_cast<std::size_t>(conv->scratch_bytes()) + 64);
  void* aligned = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64);
  constexpr std::size_t channel = 5, centre = 13;
  src[channel] = 1;

  conv->execute({}, std::vector<void*>{src.data(), weights.data(), nullptr, dst.data()}, aligned);

  for (std::size_t o = 0; o < 32; ++o) EXPECT_EQ(dst[o], weights[(centre * 16 + channel) * 32 + o]) << o;
}

TEST(OnednnConv, RefusesMoreCellsThanItCounts) {
  for (const tensor::Shape& src : {tensor::Shape{1, 4, 4096, 4096, 4096}, tensor::Shape{1, 4, 3, 3, 2147483647}}) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
      EXPECT_EQ(make_conv(task_of(pass, src, 16, same(3)), 2), nullptr) << tensor::to_text(src);
    }
  }
}

TEST(OnednnConv, RefusesLayoutsThatAreNotDense) {
  ConvTask task = task_of(Pass::forward, {1, 16, 4, 4, 4}, 16, same(3));
  ASSERT_NE(make_conv(task, 1), nullptr);

  task.src = tensor::channel_range(tensor::channels_last({1, 32, 4, 4, 4}), 0, 16);

  EXPECT_EQ(make_conv(task, 1), nullptr);
}

TEST(OnednnConv, RefusesWhereTheScratchpadWouldBeOverrun) {
  tensor::Window window;
  window.stride = {1, 2, 2};

  EXPECT_EQ(make_conv(task_of(Pass::backward_weights, {2, 8, 1, 6, 6}, 32, window), 2), nullptr);
}

TEST(OnednnConv, RefusesReferenceImplementations) {
  EXPECT_FALSE(kernels::onednn::is_fast("ref:any"));
  EXPECT_FALSE(kernels::onednn::is_fast("gemm:ref"));
  EXPECT_FALSE(kernels::onednn::is_fast("x64:gemm:jit"));
  EXPECT_TRUE(kernels::onednn::is_fast("jit:avx512_core"));
}

TEST(OnednnConv, TreatsDepthPlanesAsSamples) {
  tensor::Window window;
  window.size = {1, 3, 3};
  window.pad_lo = window.pad_hi = {0, 1, 1};
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
    const ConvTask task = task_of(pass, {2, 16, 3, 5, 4}, 16, window);
    const Make make = [&](int threads) {
      std::vector<std::unique_ptr<kernels::Primitive>> made;
      made.push_back(make_conv(task, threads));
      return made;
    };
    const std::vector<int> nulls =
        pass == Pass::backward_data ? std::vector<int>{} : std::vector{pass == Pass::forward ? 2 : 3};
    EXPECT_EQ(check({.task = task, .nulls = nulls, .shared = {}}, make), "");
  }
}

}  // namespace
}  // namespace orthant::test
