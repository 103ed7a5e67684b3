#include "orthant/kernels/poll.hpp"

#include "tests/kernels/execute.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace orthant::kernels {
namespace {

constexpr tensor::Window three{.size = {3, 3, 3}, .pad_lo = {1, 1, 1}, .pad_hi = {1, 1, 1}};

/// Runs a pass of a Winograd convolution of `channels` to 16 channels.
void run_pass(model::Pass pass, std::int64_t channels, int threads, Poll& poll) {
  const model::ConvTask task{.pass = pass,
                             .window = three,
                             .src = tensor::channels_last({1, channels, 12, 12, 12}),
                             .dst = tensor::channels_last({1, 16, 12, 12, 12}),
                             .algorithm = model::Algorithm::winograd};
  std::vector<float> src(static_cast<std::size_t>(channels * 1728)), dst(16 * 1728);
  std::vector<float> weights(static_cast<std::size_t>(16 * channels * 27));
  std::vector<void*> arguments{src.data(), weights.data(), nullptr, dst.data()};
  if (pass == model::Pass::backward_data) arguments = {dst.data(), weights.data(), src.data()};
  if (pass == model::Pass::backward_weights) arguments = {src.data(), dst.data(), weights.data(), nullptr};
  test::execute(task, arguments, threads, {.poll = &poll});
}

TEST(Poll, HappensUnderConvolutionsInTheThreadThatCalledThem) {
  for (const std::int64_t channels : {4, 16}) {
    for (const model::Pass pass : model::all_passes) {
      for (const int threads : {1, 2}) {
        int calls = 0;
        Poll poll([&, caller = std::this_thread::get_id()] {
          ++calls;
          EXPECT_EQ(std::this_thread::get_id(), caller);
        });
        run_pass(pass, channels, threads, poll);
        // Passes of four channels that are no Winograd of their own kind may be done by a kernel without polls.
        if (channels == 16) EXPECT_GT(calls, 0) << model::name_of(pass) << " with " << threads << " threads";
      }
    }
  }
}

TEST(Poll, KeepsWhatWasThrownUntilTheKernelHasEnded) {
  Poll poll([] { throw std::runtime_error("lost"); });
  run_pass(model::Pass::forward, 16, 2, poll);
  EXPECT_THROW(poll.rethrow(), std::runtime_error);
  EXPECT_NO_THROW(poll.rethrow());
}

TEST(Poll, DoesNothingInOtherThreads) {
  int calls = 0;
  Poll poll([&] { ++calls; });
  poll(1);
  EXPECT_EQ(calls, 0);
  poll(0);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace orthant::kernels
