#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/simd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace orthant::test {
namespace {

/// 8 filters are one vector of AVX-512 or AVX2, and two of SSE4: the name of the register tile tells them apart.
std::string name_of_conv() {
  const model::ConvTask task{.src = tensor::channels_last({.n = 1, .c = 16, .d = 1, .h = 1, .w = 64}),
                             .dst = tensor::channels_last({.n = 1, .c = 8, .d = 1, .h = 1, .w = 64})};
  return kernels::direct::make_conv(task, 1)->name();
}

/// The limit holds for every kernel of the process, whatever was asked before.
TEST(InstructionSet, IsKeptTo) {
  ASSERT_EQ(setenv("ORTHANT_MAX_ISA", "sse4", 1), 0);
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(name_of_conv(), "orthant:direct:sse4:tile6x2");
    EXPECT_EQ(kernels::simd_target(), "sse4");
  }
}

}  // namespace
}  // namespace orthant::test
