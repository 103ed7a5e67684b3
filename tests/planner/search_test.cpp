#include "orthant/planner/search.hpp"

#include "orthant/planner/elimination.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace orthant::planner {
namespace {

using test::Random;

int integer(Random& random, int lo, int hi) { return static_cast<int>(random.integer(lo, hi)); }

Cost random_cost(Random& random, bool coarse) {
  // Coarse costs have many ties.
  if (coarse) return {.seconds = random.integer(0, 3), .bytes = random.integer(0, 4)};
  return {.seconds = random.real(0, 10), .bytes = random.integer(0, 1000)};
}

Problem random_problem(Random& random, int most_variables, int most_choices, bool coarse) {
  Problem problem;
  const int count = integer(random, 1, most_variables);
  for (int i = 0; i < count; ++i) {
    std::vector<Cost> choices(static_cast<std::size_t>(integer(random, 1, most_choices)));
    for (Cost& cost : choices) cost = random_cost(random, coarse);
    problem.variables.push_back(std::move(choices));
  }
  // A chain with branches and joins, and here and there a part of its own.
  for (int b = 1; b < count; ++b) {
    for (int a = 0; a < b; ++a) {
      if (integer(random, 0, 9) >= (a + 1 == b ? 9 : 3)) continue;
      Problem::Pair pair{.a = a, .b = b, .costs = {}};
      if (integer(random, 0, 1) == 1) std::swap(pair.a, pair.b);
      pair.costs.resize(problem.variables[static_cast<std::size_t>(a)].size() *
                        problem.variables[static_cast<std::size_t>(b)].size());
      for (Cost& cost : pair.costs) cost = random_cost(random, coarse);
      problem.pairs.push_back(std::move(pair));
    }
  }
  return problem;
}

/// The next combination of choices; false after the last.
bool advance(const Problem& problem, std::vector<int>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (++choices[i] < static_cast<int>(problem.variables[i].size())) return true;
    choices[i] = 0;
  }
  return false;
}

std::optional<double> fastest_of_all(const Problem& problem) {
  std::optional<double> best;
  std::vector<int> choices(problem.variables.size());
  do {
    const Cost cost = total(problem, choices);
    if (cost.bytes <= problem.most_bytes && (!best || cost.seconds < *best)) best = cost.seconds;
  } while (advance(problem, choices));
  return best;
}

double least_bytes(const Problem& problem) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> choices(problem.variables.size());
  do {
    least = std::min(least, total(problem, choices).bytes);
  } while (advance(problem, choices));
  return least;
}

void expect_optimal(const Problem& problem, const SearchLimits& limits) {
  const Answer answer = search(problem, limits);
  const std::optional<double> best = fastest_of_all(problem);
  ASSERT_EQ(answer.fits, best.has_value());
  EXPECT_EQ(answer.cost.seconds, total(problem, answer.choices).seconds);
  EXPECT_EQ(answer.cost.bytes, total(problem, answer.choices).bytes);
  if (!best) {
    EXPECT_EQ(answer.cost.bytes, least_bytes(problem));
    return;
  }
  EXPECT_LE(answer.cost.bytes, problem.most_bytes);
  EXPECT_TRUE(answer.exact);
  EXPECT_NEAR(answer.cost.seconds, *best, 1e-9 * *best + 1e-12);
  EXPECT_NEAR(answer.least_seconds, *best, 1e-9 * *best + 1e-12);
}

TEST(Search, FindsWhatTryingEverythingFinds) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    expect_optimal(random_problem(random, 6, 4, i % 3 == 0), {});
  }
}

TEST(Search, FindsTheFastestThatFitsIntoMemory) {
  Random random(2);
  int limited = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Problem problem = random_problem(random, 6, 4, i % 3 == 0);
    const double free_bytes = search(problem).cost.bytes;
    const double least = least_bytes(problem);
    problem.most_bytes = least + random.real(-0.1, 1.0) * (free_bytes - least);
    if (problem.most_bytes > least && problem.most_bytes < free_bytes) ++limited;
    expect_optimal(problem, {});
  }
  EXPECT_GT(limited, 150);
}

TEST(Search, FindsItWithTablesThatAreTooSmallForAnElimination) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Problem problem = random_problem(random, 6, 4, i % 3 == 0);
    if (i % 2 == 0) problem.most_bytes = search(problem).cost.bytes * 0.9;
    expect_optimal(problem, {.table_entries = 16});
  }
}

TEST(Search, BoundsWhatItMayHaveMissedWhenItEndsEarly) {
  Random random(4);
  int cut_short = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    Problem problem = random_problem(random, 6, 4, false);
    problem.most_bytes = 0.5 * (search(problem).cost.bytes + least_bytes(problem));
    const Answer answer = search(problem, {.table_entries = 16, .visits = 8});
    const std::optional<double> best = fastest_of_all(problem);
    if (!best) continue;
    ASSERT_TRUE(answer.fits);
    if (!answer.exact) ++cut_short;
    EXPECT_GE(answer.cost.seconds, *best - 1e-9);
    EXPECT_LE(answer.least_seconds, *best + 1e-9);
    if (answer.exact) {
      EXPECT_NEAR(answer.cost.seconds, *best, 1e-9);
    }
  }
  EXPECT_GT(cut_short, 20);
}

TEST(Search, SolvesLongChainsWithJoinsExactly) {
  Random random(5);
  Problem problem;
  for (int i = 0; i < 150; ++i) {
    std::vector<Cost> choices(24);
    for (Cost& cost : choices) cost = random_cost(random, false);
    problem.variables.push_back(std::move(choices));
  }
  const auto join = [&](int a, int b) {
    Problem::Pair pair{.a = a, .b = b, .costs = std::vector<Cost>(24 * 24)};
    for (Cost& cost : pair.costs) cost = random_cost(random, false);
    problem.pairs.push_back(std::move(pair));
  };
  for (int i = 1; i < 150; ++i) join(i - 1, i);
  for (int i = 3; i < 150; i += 3) join(i - 3, i);
  const Answer free = search(problem);
  EXPECT_TRUE(free.exact);
  problem.most_bytes = 0.7 * free.cost.bytes;
  const Answer tight = search(problem);
  EXPECT_TRUE(tight.fits);
  EXPECT_GT(tight.cost.seconds, free.cost.seconds);
  EXPECT_LT(tight.cost.seconds - tight.least_seconds, 0.01 * tight.cost.seconds);
  EXPECT_EQ(search(problem).choices, tight.choices);
}

}  // namespace
}  // namespace orthant::planner
