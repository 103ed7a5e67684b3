#include "orthant/kernels/denormals.hpp"

#include "orthant/kernels/team.hpp"

#include <hwy/highway.h>

#include <gtest/gtest.h>

#include <vector>

namespace orthant::kernels {
namespace {

/// How many of the threads of a team take a number that is not normal for zero.
int threads_that_flush(int threads) {
  std::vector<int> flushes(static_cast<std::size_t>(threads), 0);
  run_team(threads, [&](int thread, int) {
    const volatile float tiny = 1e-40F, one = 1.0F;
    const volatile float product = tiny * one;
    flushes[static_cast<std::size_t>(thread)] = product == 0 ? 1 : 0;
  });
  int sum = 0;
  for (const int one : flushes) sum += one;
  return sum;
}

TEST(FlushToZero, HoldsInAllThreadsWhileItLives) {
#if HWY_ARCH_X86
  for (const int threads : {1, 2}) {
    EXPECT_EQ(threads_that_flush(threads), 0);
    {
      const FlushToZero flush(threads);
      EXPECT_EQ(threads_that_flush(threads), threads);
    }
    EXPECT_EQ(threads_that_flush(threads), 0);
  }
#endif
}

}  // namespace
}  // namespace orthant::kernels
