#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace orthant::planner {

struct Cost {
  double seconds = 0;
  double bytes = 0;
};

/// Variables with choices, and what these cost, alone and in pairs.
struct Problem {
  struct Pair {
    int a = 0, b = 0;         ///< different variables
    std::vector<Cost> costs;  ///< per choice of a, then of b
  };
  std::vector<std::vector<Cost>> variables;  ///< per choice; at least one each
  std::vector<Pair> pairs;
  double most_bytes = std::numeric_limits<double>::infinity();  ///< of all costs together
};

/// What all costs of a combination add up to.
Cost total(const Problem& problem, const std::vector<int>& choices);

struct SearchLimits {
  std::int64_t table_entries = std::int64_t{1} << 22;
  std::int64_t visits = 200'000;  ///< of choices, where the tables alone do not tell
};

struct Answer {
  std::vector<int> choices;  ///< the fastest of those that fit; the smallest one if none does
  Cost cost;
  bool fits = false;
  double least_seconds = 0;  ///< no combination that fits is faster
  bool exact = false;        ///< it is proven that none that fits is faster
};

/// The combination of least time that fits into memory. The tables of an elimination give it where memory is plenty;
/// otherwise they give bounds, with bytes priced so that the bound is as high as it can be (Lagrange), and a
/// depth-first search follows them. Without luck it ends after a number of visits, with a bound of what it may have
/// missed.
Answer search(const Problem& problem, const SearchLimits& limits = {});

}  // namespace orthant::planner
