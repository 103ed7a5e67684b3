#include "orthant/data/io/large_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orthant::data::io {
namespace {

TEST(LargeBlock, HasTheBytesThatWereAskedFor) {
  for (const std::int64_t bytes : {0, 1, 4095, 4097, (2 << 20) - 1, (2 << 20) + 5, 5 << 20}) {
    const LargeBlock block(bytes);

    EXPECT_EQ(block.bytes(), bytes);
    EXPECT_EQ(block.span().size(), static_cast<std::size_t>(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0U);
    std::fill(block.span().begin(), block.span().end(), std::byte{7});
  }
}

}  // namespace
}  // namespace orthant::data::io
