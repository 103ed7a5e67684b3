#include "orthant/tensor/axis_rule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orthant::tensor {
namespace {

using Kind = AxisRule::Kind;

std::vector<std::int64_t> cells(const AxisRule& rule, std::int64_t src, std::int64_t dst) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < dst; ++i) list.push_back(tap_of(rule, i, src, dst).lo);
  return list;
}

TEST(AxisRule, ShiftsMirrorsAndRepeats) {
  EXPECT_EQ(cells({.first = 1, .step = 2}, 6, 3), (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_EQ(cells({.first = -2}, 3, 6), (std::vector<std::int64_t>{-1, -1, 0, 1, 2, -1}));
  EXPECT_EQ(cells({.kind = Kind::reflect, .first = -2}, 3, 7), (std::vector<std::int64_t>{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(cells({.kind = Kind::edge, .first = -2}, 3, 7), (std::vector<std::int64_t>{0, 0, 0, 1, 2, 2, 2}));
}

TEST(AxisRule, NearestTakesTheCellBelow) {
  EXPECT_EQ(cells({.kind = Kind::nearest}, 3, 6), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(cells({.kind = Kind::nearest}, 5, 3), (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(cells({.kind = Kind::nearest}, 1, 3), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(AxisRule, LinearLiesBetweenTwoCells) {
  const AxisRule half{.kind = Kind::linear};
  EXPECT_EQ(tap_of(half, 0, 4, 8).lo, 0);
  EXPECT_EQ(tap_of(half, 0, 4, 8).weight, 0);  // below the middle of the first cell
  EXPECT_EQ(tap_of(half, 1, 4, 8).weight, 0.25F);
  EXPECT_EQ(tap_of(half, 2, 4, 8).lo, 0);
  EXPECT_EQ(tap_of(half, 2, 4, 8).hi, 1);
  EXPECT_EQ(tap_of(half, 2, 4, 8).weight, 0.75F);
  EXPECT_EQ(tap_of(half, 7, 4, 8).hi, 3);
  const AxisRule corners{.kind = Kind::corners};
  EXPECT_EQ(tap_of(corners, 4, 3, 5).lo, 2);
  EXPECT_EQ(tap_of(corners, 1, 3, 5).weight, 0.5F);
  EXPECT_EQ(tap_of(corners, 0, 3, 1).lo, 0);
}

/// Demands of the parts of a grid must rise with the coordinate, whatever the rule.
TEST(AxisRule, RangesRiseAndCoverWhatIsRead) {
  for (const Kind kind : {Kind::shift, Kind::reflect, Kind::edge, Kind::nearest, Kind::linear, Kind::corners}) {
    for (const std::int64_t dst : {3, 9, 12, 17}) {
      const AxisRule rule{.kind = kind, .first = kind <= Kind::edge ? -2 : 0};
      constexpr std::int64_t src = 9;
      if (kind == Kind::reflect && dst > 2 + src + src - 1) continue;
      Range before{0, 0};
      for (std::int64_t lo = 0; lo < dst; lo += 2) {
        const Range range{lo, std::min(lo + 2, dst)};
        const Range read = cells_of(rule, range, src, dst);
        EXPECT_GE(read.lo, before.lo) << "dst " << dst << " from " << lo;
        EXPECT_GE(read.hi, before.hi) << "dst " << dst << " from " << lo;
        for (std::int64_t i = range.lo; i < range.hi; ++i) {
          const AxisTap tap = tap_of(rule, i, src, dst);
          if (tap.lo < 0) continue;
          EXPECT_LE(read.lo, tap.lo);
          EXPECT_GT(read.hi, tap.weight == 0 ? tap.lo : tap.hi);
        }
        before = read;
      }
    }
  }
}

}  // namespace
}  // namespace orthant::tensor
