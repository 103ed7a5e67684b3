#include "orthant/tensor/rank_group.hpp"

#include "tests/tensor/draw.hpp"

#include <gtest/gtest.h>

namespace orthant::tensor {
namespace {

using test::Draw;

/// The members, by definition: all ranks of the grid are looked at.
std::vector<int> members_by_scan(const Distribution& dst, int rank, const std::vector<Dim>& fixed) {
  std::vector<int> members;
  if (!takes_part(dst, rank)) return members;
  const Grid mine = coordinates(dst.grid, rank - dst.first_rank);
  for (int part = 0; part < parts(dst.grid); ++part) {
    const Grid other = coordinates(dst.grid, part);
    bool agrees = true;
    for (const Dim dim : fixed) agrees = agrees && other[dim] == mine[dim];
    if (agrees) members.push_back(dst.first_rank + part);
  }
  return members;
}

TEST(RankGroup, HasTheRanksThatAgreeInTheFixedCoordinates) {
  Draw draw(1);
  for (int trial = 0; trial < 3000 && !testing::Test::HasFailure(); ++trial) {
    const Distribution dst{
        .global = {8, 8, 8, 8, 8},
        .grid = {draw.number(1, 3), draw.number(1, 3), draw.number(1, 3), draw.number(1, 2), draw.number(1, 2)},
        .first_rank = draw.number(0, 3)};
    const int rank = draw.number(0, parts(dst.grid) + 4);
    std::vector<Dim> fixed;
    for (const Dim dim : all_dims) {
      if (draw(0, 1) == 0) fixed.push_back(dim);
    }
    const RankGroup group(dst, rank, fixed);
    const std::vector<int> members = members_by_scan(dst, rank, fixed);
    EXPECT_EQ(group.to_list(), members);
    EXPECT_EQ(group.size(), static_cast<int>(members.size()));
    for (int other = 0; other < 60; ++other) {
      const auto found = std::find(members.begin(), members.end(), other);
      EXPECT_EQ(group.place_of(other), found == members.end() ? -1 : found - members.begin());
    }
  }
}

TEST(RankGroup, OfTheSameRanksIsEqual) {
  const RankGroup rows({.global = {8, 1, 1, 8, 8}, .grid = {.n = 4}}, 0, {});
  const RankGroup blocks({.global = {8, 1, 1, 8, 8}, .grid = {.n = 2, .h = 2}}, 3, {});
  EXPECT_EQ(rows, blocks);
  const RankGroup half({.global = {8, 4, 1, 8, 8}, .grid = {.n = 2, .c = 2}}, 0, std::array{Dim::c});
  EXPECT_NE(rows, half);
  EXPECT_EQ(half.to_list(), (std::vector{0, 2}));
}

}  // namespace
}  // namespace orthant::tensor
