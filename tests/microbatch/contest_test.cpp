#include "orthant/microbatch/contest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orthant::test {
namespace {

using microbatch::Winner;

/// Candidates with given seconds per try, the last of which repeats, and a time limit.
struct Script {
  std::vector<std::vector<double>> seconds;
  double limit = 1000, closer_limit = 1000;
  std::string order{};  ///< which candidates were tried
  double spent = 0;

  std::optional<Winner> run() {
    std::vector<std::size_t> tries(seconds.size());
    return microbatch::fastest({.candidates = static_cast<int>(seconds.size()),
                                .seconds =
                                    [&](int candidate) {
                                      order += static_cast<char>('0' + candidate);
                                      const auto i = static_cast<std::size_t>(candidate);
                                      const double taken = seconds[i][std::min(tries[i]++, seconds[i].size() - 1)];
                                      spent += taken;
                                      return taken;
                                    },
                                .allows = [&](double wanted) { return spent + wanted <= limit; },
                                .allows_closer = [&](double wanted) { return spent + wanted <= closer_limit; }});
  }

  [[nodiscard]] std::ptrdiff_t tries(char candidate) const { return std::count(order.begin(), order.end(), candidate); }
};

TEST(Contest, TriesTheRuleFirstAndTheHopelessOnce) {
  Script script{.seconds = {{0.010}, {0.025}, {0.008}}};
  const auto winner = script.run();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, 2);
  EXPECT_DOUBLE_EQ(winner->seconds, 0.008);
  EXPECT_EQ(script.order.substr(0, 3), "012");
  EXPECT_EQ(script.tries('1'), 1);
}

TEST(Contest, OneCandidateIsTimedAndTaken) {
  Script script{.seconds = {{0.012, 0.010}}};
  const auto winner = script.run();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, 0);
  EXPECT_DOUBLE_EQ(winner->seconds, 0.010);
  EXPECT_EQ(script.order, "00");
}

TEST(Contest, LongOnesAreTriedSeldom) {
  Script script{.seconds = {{1.0}, {1.2}, {1.4}}};
  const auto winner = script.run();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, 0);
  EXPECT_EQ(script.order, "01201");
}

TEST(Contest, ADisturbanceDoesNotMakeTheWorseOneWin) {
  for (std::size_t disturbed = 0; disturbed < 3; ++disturbed) {
    std::vector<double> rule(3, 0.024);
    rule[disturbed] = 0.040;
    Script script{.seconds = {rule, {0.028}}};
    const auto winner = script.run();
    ASSERT_TRUE(winner);
    EXPECT_EQ(winner->candidate, 0) << "disturbed in round " << disturbed;
  }
}

TEST(Contest, ACloseFinishIsLookedAtAgain) {
  // Three rounds say that the challenger is ahead, later ones that it is not.
  Script script{.seconds = {{0.0255, 0.0255, 0.0255, 0.0255, 0.0240}, {0.0245}}};
  const auto winner = script.run();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, 0);
  EXPECT_GT(script.tries('0'), 4);

  Script hurried{.seconds = {{0.0255, 0.0255, 0.0255, 0.0255, 0.0240}, {0.0245}}, .closer_limit = 0};
  ASSERT_TRUE(hurried.run());
  EXPECT_EQ(hurried.tries('0'), 3);
}

TEST(Contest, TheRuleIsReplacedOnlyBeyondTheNoise) {
  EXPECT_EQ(Script({.seconds = {{0.0100}, {0.0098}}}).run()->candidate, 0);
  EXPECT_EQ(Script({.seconds = {{0.0100}, {0.0096}}}).run()->candidate, 1);
}

TEST(Contest, WithoutTimeToCompareThereIsNoWinner) {
  Script one_round{.seconds = {{1.0}, {1.1}}, .limit = 3};
  EXPECT_FALSE(one_round.run());
  EXPECT_LE(one_round.spent, 3);
  EXPECT_EQ(one_round.order, "01");
  // The other might take twice as long.
  Script nothing{.seconds = {{1.0}, {1.1}}, .limit = 2.9};
  EXPECT_FALSE(nothing.run());
  EXPECT_EQ(nothing.order, "0");
  // One that is far ahead needs no second round.
  Script clear{.seconds = {{1.0}, {1.5}}, .limit = 3};
  ASSERT_TRUE(clear.run());
  EXPECT_EQ(clear.order, "01");
}

}  // namespace
}  // namespace orthant::test
