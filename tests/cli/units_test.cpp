#include "orthant/cli/units.hpp"

#include <gtest/gtest.h>

namespace orthant::cli {
namespace {

TEST(Units, GroupsDigits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(9437636), "9,437,636");
  EXPECT_EQ(with_commas(-1000), "-1,000");
  EXPECT_EQ(with_commas(-100), "-100");
}

TEST(Units, ScalesBytesAndFlops) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(std::int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(flops_text(999), "999 FLOP");
  EXPECT_EQ(flops_text(55'550'000'000), "55.55 GFLOP");
}

TEST(Units, ChoosesTheUnitOfTime) {
  EXPECT_EQ(seconds_text(0.0000123), "12.3 us");
  EXPECT_EQ(seconds_text(0.0123), "12.30 ms");
  EXPECT_EQ(seconds_text(12.3), "12.30 s");
  EXPECT_EQ(seconds_text(130), "2 min 10 s");
  EXPECT_EQ(seconds_text(7265), "2 h 01 min");
}

TEST(Units, SharesArePercent) { EXPECT_EQ(percent_text(0.5714), "57.1 %"); }

}  // namespace
}  // namespace orthant::cli
