#include "orthant/schedule/levels.hpp"

#include <gtest/gtest.h>

namespace orthant::schedule {
namespace {

using tensor::RankGroup;

RankGroup all_of(int ranks) { return {{.global = {ranks, 1, 1, 1, 1}, .grid = {.n = ranks}}, 0, {}}; }

TEST(Levels, HaveTheMembersOfTheMachineAndThoseOfTheSamePlace) {
  const Levels levels = levels_of(all_of(6), 3, plan::Machines({2, 2, 2}), true);
  EXPECT_EQ(levels.inside.to_list(), (std::vector{2, 3}));
  EXPECT_EQ(levels.inside_place, 1);
  EXPECT_EQ(levels.active, 2);
  EXPECT_EQ(levels.across.to_list(), (std::vector{1, 3, 5}));
  EXPECT_EQ(levels.across_place, 1);
}

TEST(Levels, OfMachinesThatDifferHaveAsManyActivePlacesAsTheSmallest) {
  const plan::Machines machines({3, 1, 2});
  const Levels first = levels_of(all_of(6), 0, machines, true);
  EXPECT_EQ(first.active, 1);
  EXPECT_EQ(first.machines, 3);
  EXPECT_EQ(first.across.to_list(), (std::vector{0, 3, 4}));
  const Levels second = levels_of(all_of(6), 1, machines, true);
  EXPECT_FALSE(second.is_active());
  EXPECT_TRUE(second.across.empty());
  EXPECT_EQ(second.inside.to_list(), (std::vector{0, 1, 2}));
}

TEST(Levels, AreOneWhereMachinesMakeNoDifference) {
  const Levels levels = levels_of(all_of(4), 2, plan::Machines({4}), false);
  EXPECT_EQ(levels.inside.to_list(), std::vector{2});
  EXPECT_EQ(levels.across.to_list(), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(levels.across_place, 2);
}

TEST(Levels, OfAGroupThatIsNotConsecutive) {
  // Ranks 1, 3, 5, 7 of machines of four.
  const RankGroup odd({.global = {4, 2, 1, 1, 1}, .grid = {.n = 4, .c = 2}}, 1, std::array{tensor::Dim::c});
  const Levels levels = levels_of(odd, 7, plan::Machines({4, 4}), true);
  EXPECT_EQ(levels.inside.to_list(), (std::vector{5, 7}));
  EXPECT_EQ(levels.across.to_list(), (std::vector{3, 7}));
}

TEST(Levels, SmoothPartsHaveSmallFactors) {
  EXPECT_EQ(smooth_part(2048), 2048);
  EXPECT_EQ(smooth_part(7), 7);
  EXPECT_EQ(smooth_part(11), 10);
  EXPECT_EQ(smooth_part(1009), 1008);
  EXPECT_EQ(factors_of(12), (std::vector{2, 2, 3}));
  EXPECT_EQ(factors_of(1), std::vector<int>{});
  for (int count = 1; count < 5000; ++count) {
    int product = 1;
    for (const int factor : factors_of(smooth_part(count))) product *= factor;
    EXPECT_EQ(product, smooth_part(count));
    EXPECT_LE(count - product, product) << "more members would lean on one than it can tell apart";
  }
}

}  // namespace
}  // namespace orthant::schedule
