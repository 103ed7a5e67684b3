#include "orthant/planner/search.hpp"

#include "orthant/planner/elimination.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace orthant::planner {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// What a second and a byte count.
struct Weights {
  double seconds = 1, bytes = 0;
  [[nodiscard]] double of(const Cost& cost) const { return seconds * cost.seconds + bytes * cost.bytes; }
};

/// Sums that differ by rounding only are equal.
double less_rounding(double value) { return value - 1e-12 * std::abs(value); }

class Searcher {
 public:
  Searcher(const Problem& problem, const SearchLimits& limits) : problem_(problem), limits_(limits) {
    for (const auto& choices : problem.variables) sizes_.push_back(static_cast<int>(choices.size()));
    std::vector<std::vector<int>> scopes;
    for (const Problem::Pair& pair : problem.pairs) scopes.push_back({pair.a, pair.b});
    order_ = elimination_order(sizes_, scopes);
  }

  Answer run() {
    const Answer fastest = descend({.seconds = 1, .bytes = 0}, std::nullopt);
    if (fastest.cost.bytes <= problem_.most_bytes) return fastest;
    Answer smallest = descend({.seconds = 0, .bytes = 1}, std::nullopt);
    smallest.least_seconds = fastest.least_seconds;
    if (smallest.cost.bytes > problem_.most_bytes) {
      smallest.fits = false;
      return smallest;
    }
    return within_memory(fastest, smallest);
  }

 private:
  [[nodiscard]] Elimination eliminated(const Weights& weights) const {
    std::vector<Factor> factors;
    const auto add = [&](std::vector<int> scope, const std::vector<Cost>& costs) {
      Factor factor{.scope = std::move(scope), .values = {}};
      factor.values.reserve(costs.size());
      for (const Cost& cost : costs) factor.values.push_back(weights.of(cost));
      factors.push_back(std::move(factor));
    };
    for (int variable = 0; variable < static_cast<int>(sizes_.size()); ++variable)
      add({variable}, problem_.variables[index(variable)]);
    for (const Problem::Pair& pair : problem_.pairs) add({pair.a, pair.b}, pair.costs);
    return {sizes_, std::move(factors), order_, limits_.table_entries};
  }

  /// Prices bytes so that the bound is highest, going from the best that is known on both sides of the limit to what is
  /// best at the price at which those two are equal; then searches with that price.
  Answer within_memory(Answer large, Answer small) {
    Weights weights;
    std::optional<Answer> best = small;
    double least = large.least_seconds;
    for (int round = 0; round < 24; ++round) {
      weights.bytes = (small.cost.seconds - large.cost.seconds) / (large.cost.bytes - small.cost.bytes);
      if (!(weights.bytes > 0)) break;
      const Answer found = descend(weights, std::nullopt);
      least = std::max(least, found.least_seconds - weights.bytes * problem_.most_bytes);
      const bool fits = found.cost.bytes <= problem_.most_bytes;
      if (fits && found.cost.seconds < best->cost.seconds) best = found;
      if (weights.of(found.cost) >= less_rounding(weights.of(large.cost))) break;
      (fits ? small : large) = found;
    }
    Answer answer = descend(weights, best);
    answer.least_seconds = answer.exact ? answer.cost.seconds : least;
    answer.fits = true;
    return answer;
  }

  /// One search for the least weighted cost; with a combination to begin with, for the fastest that fits.
  Answer descend(const Weights& weights, const std::optional<Answer>& known) {
    const Elimination costs = eliminated(weights);
    const std::optional<Elimination> bytes =
        known ? std::optional(eliminated({.seconds = 0, .bytes = 1})) : std::nullopt;
    Descent descent{.weights = weights, .costs = costs, .bytes = bytes ? &*bytes : nullptr};
    descent.choices.assign(sizes_.size(), 0);
    if (known) {
      descent.best = known->choices;
      descent.best_value = known->cost.seconds + weights.bytes * problem_.most_bytes;
    }
    visit(descent, sizes_.size(), costs.least(), bytes ? bytes->least() : 0);
    Answer answer{.choices = descent.best, .cost = total(problem_, descent.best), .fits = true, .least_seconds = 0};
    answer.exact = descent.visits < limits_.visits;
    answer.least_seconds = answer.exact ? weights.of(answer.cost) : costs.least();
    return answer;
  }

  struct Descent {
    Weights weights;
    const Elimination& costs;
    const Elimination* bytes = nullptr;  ///< if memory is limited
    std::vector<int> choices{};
    std::vector<int> best{};
    double best_value = std::numeric_limits<double>::max();  ///< what is not below it is not better
    std::int64_t visits = 0;
  };

  /// Chooses for the variable before `place` in the order, the most promising first. `value` and `bytes` are the least
  /// that can come of what has been chosen.
  void visit(Descent& descent, std::size_t place, double value, double bytes) {
    if (place == 0) return leaf(descent);
    const int variable = order_[place - 1];
    const std::vector<double> rises = descent.costs.rises(variable, descent.choices);
    const std::vector<double> more = descent.bytes ? descent.bytes->rises(variable, descent.choices) : rises;
    std::vector<int> turns(rises.size());
    std::iota(turns.begin(), turns.end(), 0);
    std::stable_sort(turns.begin(), turns.end(), [&](int a, int b) { return rises[index(a)] < rises[index(b)]; });
    for (const int choice : turns) {
      if (value + rises[index(choice)] >= less_rounding(descent.best_value)) return;
      if (descent.bytes && less_rounding(bytes + more[index(choice)]) > problem_.most_bytes) continue;
      if (!descent.best.empty() && ++descent.visits >= limits_.visits) return;
      descent.choices[index(variable)] = choice;
      visit(descent, place - 1, value + rises[index(choice)], bytes + more[index(choice)]);
    }
  }

  void leaf(Descent& descent) const {
    const Cost cost = total(problem_, descent.choices);
    if (descent.bytes && cost.bytes > problem_.most_bytes) return;
    const double value =
        descent.bytes ? cost.seconds + descent.weights.bytes * problem_.most_bytes : descent.weights.of(cost);
    if (!descent.best.empty() && value >= descent.best_value) return;
    descent.best_value = value;
    descent.best = descent.choices;
  }

  const Problem& problem_;
  SearchLimits limits_;
  std::vector<int> sizes_;
  std::vector<int> order_;
};

}  // namespace

Cost total(const Problem& problem, const std::vector<int>& choices) {
  Cost sum;
  const auto add = [&](const Cost& cost) {
    sum.seconds += cost.seconds;
    sum.bytes += cost.bytes;
  };
  for (std::size_t variable = 0; variable < choices.size(); ++variable)
    add(problem.variables[variable][index(choices[variable])]);
  for (const Problem::Pair& pair : problem.pairs)
    add(pair.costs[index(choices[index(pair.a)]) * problem.variables[index(pair.b)].size() +
                   index(choices[index(pair.b)])]);
  return sum;
}

Answer search(const Problem& problem, const SearchLimits& limits) { return Searcher(problem, limits).run(); }

}  // namespace orthant::planner
