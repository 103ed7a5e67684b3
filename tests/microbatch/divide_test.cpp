#include "orthant/microbatch/divide.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace orthant::test {
namespace {

using microbatch::Candidate;
using microbatch::Division;
using microbatch::no_limit;
using microbatch::Policy;
using microbatch::Table;

constexpr double never = std::numeric_limits<double>::infinity();

/// Small whole numbers, whose sums are exact and often equal.
Table random_table(std::mt19937& random) {
  const auto number = [&](int lowest, int highest) { return std::uniform_int_distribution(lowest, highest)(random); };
  Table table{.kernel = "conv", .samples = number(1, 7)};
  const int count = number(1, 9);
  for (int i = 0; i < count; ++i) {
    const int samples = number(1, static_cast<int>(table.samples));
    table.candidates.push_back({.algorithm = std::string(1, static_cast<char>('a' + i)),
                                .samples = samples,
                                .seconds = static_cast<double>(number(1, 4) * samples + number(0, 6)),
                                .workspace_bytes = number(0, 8),
                                .first_only = number(0, 3) == 0});
  }
  return table;
}

/// Every sequence of candidates that adds up to the samples.
void each_division(const Table& table, const std::function<void(double seconds, std::int64_t bytes)>& visit) {
  const std::function<void(std::int64_t, double, std::int64_t, bool)> go = [&](std::int64_t left, double seconds,
                                                                               std::int64_t bytes, bool is_first) {
    if (left == 0) return visit(seconds, bytes);
    for (const Candidate& one : table.candidates) {
      if (one.samples > left || (one.first_only && !is_first)) continue;
      go(left - one.samples, seconds + one.seconds, std::max(bytes, one.workspace_bytes), false);
    }
  };
  go(table.samples, 0, 0, true);
}

double least_seconds(const Table& table, std::int64_t limit) {
  double least = never;
  each_division(table, [&](double seconds, std::int64_t bytes) {
    if (bytes <= limit) least = std::min(least, seconds);
  });
  return least;
}

/// The division is what it says: pieces of the table that add up, of which only the first may be one that must be.
void expect_whole(const Division& division, const Table& table) {
  double seconds = 0;
  std::int64_t samples = 0, bytes = 0;
  for (std::size_t i = 0; i < division.pieces.size(); ++i) {
    const Candidate& piece = division.pieces[i];
    EXPECT_NE(std::find(table.candidates.begin(), table.candidates.end(), piece), table.candidates.end());
    EXPECT_TRUE(i == 0 || !piece.first_only);
    seconds += piece.seconds;
    samples += piece.samples;
    bytes = std::max(bytes, piece.workspace_bytes);
  }
  EXPECT_EQ(samples, table.samples);
  EXPECT_EQ(seconds, division.seconds);
  EXPECT_EQ(bytes, division.workspace_bytes);
}

TEST(Divide, WithinLimitIsTheBestOfAllDivisions) {
  std::mt19937 random(1);
  int fitting = 0;
  for (int i = 0; i < 1000; ++i) {
    const Table table = random_table(random);
    for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{2}, std::int64_t{5}, no_limit}) {
      const auto division = microbatch::within_limit(table, limit);
      EXPECT_EQ(division ? division->seconds : never, least_seconds(table, limit)) << i;
      if (!division) continue;
      ++fitting;
      EXPECT_LE(division->workspace_bytes, limit);
      expect_whole(*division, table);
    }
  }
  EXPECT_GT(fitting, 1000);
}

TEST(Divide, TheFrontHasTheBestForEveryLimitAndNothingElse) {
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    const Table table = random_table(random);
    const std::vector<Division> front = microbatch::pareto_front(table);
    for (std::size_t k = 0; k < front.size(); ++k) {
      expect_whole(front[k], table);
      if (k == 0) continue;
      EXPECT_LT(front[k - 1].workspace_bytes, front[k].workspace_bytes);
      EXPECT_GT(front[k - 1].seconds, front[k].seconds);
    }
    for (std::int64_t limit = 0; limit <= 8; ++limit) {
      const Division* best = microbatch::within_limit(front, limit);
      EXPECT_EQ(best ? best->seconds : never, least_seconds(table, limit));
    }
  }
}

double seconds_of(const std::vector<std::vector<Division>>& fronts, const std::vector<std::size_t>& chosen) {
  double seconds = 0;
  for (std::size_t k = 0; k < fronts.size(); ++k) seconds += fronts[k][chosen[k]].seconds;
  return seconds;
}

std::int64_t bytes_of(const std::vector<std::vector<Division>>& fronts, const std::vector<std::size_t>& chosen) {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < fronts.size(); ++k) bytes += fronts[k][chosen[k]].workspace_bytes;
  return bytes;
}

/// Over all divisions of all tables, not only those of the fronts.
double least_seconds(const std::vector<Table>& tables, std::int64_t total) {
  std::vector<double> least(static_cast<std::size_t>(total) + 1, 0);
  for (const Table& table : tables) {
    std::vector<double> next(least.size(), never);
    each_division(table, [&](double seconds, std::int64_t bytes) {
      for (auto at = static_cast<std::size_t>(bytes); at < next.size(); ++at)
        next[at] = std::min(next[at], seconds + least[at - static_cast<std::size_t>(bytes)]);
    });
    least = next;
  }
  return least.back();
}

TEST(Divide, WithinTotalIsTheBestOfAllDivisions) {
  std::mt19937 random(3);
  int fitting = 0;
  for (int i = 0; i < 600; ++i) {
    std::vector<Table> tables;
    std::vector<std::vector<Division>> fronts;
    for (int k = 0, count = std::uniform_int_distribution(1, 4)(random); k < count; ++k) {
      tables.push_back(random_table(random));
      fronts.push_back(microbatch::pareto_front(tables.back()));
    }
    const std::int64_t total = std::uniform_int_distribution(0, 20)(random);
    const auto chosen = microbatch::within_total(fronts, total);
    EXPECT_EQ(chosen ? seconds_of(fronts, *chosen) : never, least_seconds(tables, total)) << i;
    if (!chosen) continue;
    ++fitting;
    EXPECT_LE(bytes_of(fronts, *chosen), total);
  }
  EXPECT_GT(fitting, 300);
}

/// One kernel has a limit of its own and a total at once: dynamic and integer program are asked the same.
TEST(Divide, OneKernelIsDividedAlikeByBoth) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    const Table table = random_table(random);
    const std::vector<std::vector<Division>> fronts{microbatch::pareto_front(table)};
    for (std::int64_t limit = 0; limit <= 8; ++limit) {
      const auto alone = microbatch::within_limit(table, limit);
      const auto chosen = microbatch::within_total(fronts, limit);
      ASSERT_EQ(alone.has_value(), chosen.has_value());
      EXPECT_EQ(alone ? alone->seconds : never, chosen ? seconds_of(fronts, *chosen) : never);
    }
  }
}

/// As many kernels as ResNet-50 has, against dynamic programming over every number of bytes.
TEST(Divide, ManyKernelsWithinTotal) {
  std::mt19937 random(5);
  const auto number = [&](int lowest, int highest) { return std::uniform_int_distribution(lowest, highest)(random); };
  std::vector<std::vector<Division>> fronts(159);
  for (auto& front : fronts) {
    double seconds = number(300, 3000);
    std::int64_t bytes = number(0, 5);
    for (int i = 0, count = number(1, 9); i < count; ++i) {
      front.push_back({.seconds = seconds, .workspace_bytes = bytes});
      seconds -= number(1, 30);
      bytes += number(1, 40);
    }
  }
  for (const std::size_t total : {std::size_t{900}, std::size_t{2500}, std::size_t{6000}}) {
    std::vector<double> least(total + 1, 0);
    for (const auto& front : fronts) {
      std::vector<double> next(least.size(), never);
      for (const Division& one : front) {
        const auto bytes = static_cast<std::size_t>(one.workspace_bytes);
        for (std::size_t at = bytes; at <= total; ++at) next[at] = std::min(next[at], one.seconds + least[at - bytes]);
      }
      least = next;
    }
    const auto chosen = microbatch::within_total(fronts, static_cast<std::int64_t>(total));
    ASSERT_TRUE(chosen);
    EXPECT_LE(bytes_of(fronts, *chosen), static_cast<std::int64_t>(total));
    EXPECT_EQ(seconds_of(fronts, *chosen), least.back());
  }
}

TEST(Divide, PoliciesSayWhichSizesAreTried) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(microbatch::piece_sizes(Policy::undivided, 6), (Sizes{6}));
  EXPECT_EQ(microbatch::piece_sizes(Policy::power_of_two, 6), (Sizes{1, 2, 4, 6}));
  EXPECT_EQ(microbatch::piece_sizes(Policy::power_of_two, 8), (Sizes{1, 2, 4, 8}));
  EXPECT_EQ(microbatch::piece_sizes(Policy::all, 4), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(microbatch::piece_sizes(Policy::all, 1), (Sizes{1}));
}

TEST(Divide, WhatCannotAddUpHasNoDivision) {
  const Table table{.kernel = "conv", .samples = 3, .candidates = {{.algorithm = "a", .samples = 2, .seconds = 1}}};
  EXPECT_TRUE(microbatch::pareto_front(table).empty());
  EXPECT_FALSE(microbatch::within_limit(table, no_limit));
  const std::vector<std::vector<Division>> fronts{{}};
  EXPECT_FALSE(microbatch::within_total(fronts, no_limit));
}

}  // namespace
}  // namespace orthant::test
