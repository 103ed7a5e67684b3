#include "orthant/data/sets/intake.hpp"

#include <gtest/gtest.h>

#include <limits>

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
  ASSERT_EQ(intake.of(2, 1).size(), 1U);
  EXPECT_EQ(&intake.of(2, 1)[0], &intake.of(2)[1]);
  EXPECT_EQ(intake.of(2, 0).size(), 1U);
  EXPECT_TRUE(intake.of(2, 2).empty());
  EXPECT_TRUE(intake.of(1, 1).empty());
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

TEST(Intake, KeepsAsManySamplesAsFit) {
  const Intake intake = small_intake();
  for (int rank = 0; rank < 2; ++rank) {
    for (std::int64_t limit = 0; limit < 70; ++limit) {
      const std::int64_t most = intake.most_samples(rank, limit);

      EXPECT_LE(intake.bytes(rank, most), limit) << rank << " " << limit;
      EXPECT_GT(intake.bytes(rank, most + 1), limit) << rank << " " << limit;
    }
  }
  EXPECT_EQ(intake.most_samples(2, 0), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace orthant::data::sets
