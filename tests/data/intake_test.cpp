#include "orthant/data/sets/intake.hpp"

#include <gtest/gtest.h>

namespace orthant::data::sets {
namespace {

tensor::Box slab(std::int64_t lo, std::int64_t hi) { return {.lo = {0, 0, lo, 0, 0}, .hi = {1, 1, hi, 1, 1}}; }

/// Rank 0 takes 1, 2 and 3 cells of the three samples of a mini-batch, rank 1 takes 5 of the last, rank 2 nothing.
Intake small_intake() {
  return Intake({{.rank = 0, .n = 2, .box = slab(0, 3), .index = 0},
                 {.rank = 0, .n = 0, .box = slab(0, 1), .index = 1},
                 {.rank = 0, .n = 1, .box = slab(0, 2), .index = 2},
                 {.rank = 1, .n = 2, .box = slab(0, 5), .index = 0}},
                3, 3);
}

TEST(Intake, FindsWhatIsTakenOfASample) {
  const Intake intake = small_intake();

  ASSERT_EQ(intake.of(2).size(), 2U);
  EXPECT_EQ(intake.of(2)[0].rank, 0);
  EXPECT_EQ(intake.of(2)[0].offset_bytes, 12);
  EXPECT_EQ(intake.of(2)[1].rank, 1);
  EXPECT_EQ(intake.of(2)[1].offset_bytes, 0);
  EXPECT_EQ(intake.of(0)[0].index, 1);
}

TEST(Intake, AddsUpTheBytesOfAStream) {
  const Intake intake = small_intake();

  EXPECT_EQ(intake.bytes(0, 0), 0);
  EXPECT_EQ(intake.bytes(0, 1), 4);
  EXPECT_EQ(intake.bytes(0, 3), 24);
  EXPECT_EQ(intake.bytes(0, 8), 60);
  EXPECT_EQ(intake.bytes(1, 8), 40);
  EXPECT_EQ(intake.bytes(2, 8), 0);
}

TEST(Intake, KeepsAsManySamplesAsFitOnEveryRank) {
  const Intake intake = small_intake();
  for (std::int64_t first = 0; first < 70; ++first) {
    for (std::int64_t second = 0; second < 70; second += 3) {
      const std::vector<std::int64_t> limits{first, second, 0};
      const std::int64_t most = intake.most_samples(limits);

      EXPECT_TRUE(intake.bytes(0, most) <= first && intake.bytes(1, most) <= second) << first << " " << second;
      EXPECT_TRUE(intake.bytes(0, most + 1) > first || intake.bytes(1, most + 1) > second) << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace orthant::data::sets
