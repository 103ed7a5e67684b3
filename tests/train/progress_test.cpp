#include "orthant/train/progress.hpp"

#include <gtest/gtest.h>

namespace orthant::train {
namespace {

TEST(Progress, SaysWhereTheRunStands) {
  EXPECT_EQ(progress_text({.step = 12, .steps = 400, .loss = 0.03125, .samples_per_second = 24.12, .seconds_left = 65}),
            "step 12/400  loss 0.03125  24.1 samples/s  1:05 left");
}

TEST(Progress, ClockHasHoursOnlyWhenNeeded) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(59.6), "1:00");
  EXPECT_EQ(clock_text(3599), "59:59");
  EXPECT_EQ(clock_text(7389), "2:03:09");
}

}  // namespace
}  // namespace orthant::train
