#include "orthant/planner/elimination.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace orthant::planner {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// Which variables are in a factor together.
using Neighbours = std::vector<std::vector<bool>>;

/// The variables that are still there and meet `variable`.
std::vector<int> around(const Neighbours& meets, const std::vector<bool>& gone, int variable) {
  std::vector<int> found;
  for (int other = 0; other < static_cast<int>(meets.size()); ++other) {
    if (other != variable && !gone[index(other)] && meets[index(variable)][index(other)]) found.push_back(other);
  }
  return found;
}

std::int64_t pairs_to_join(const Neighbours& meets, const std::vector<int>& group) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = i + 1; j < group.size(); ++j) count += !meets[index(group[i])][index(group[j])];
  }
  return count;
}

/// How far apart neighbouring choices of a variable lie in a factor's values; 0 if it does not depend on it.
std::int64_t stride_of(const Factor& factor, const std::vector<int>& sizes, int variable) {
  std::int64_t stride = 1;
  for (auto in = factor.scope.rbegin(); in != factor.scope.rend(); ++in) {
    if (*in == variable) return stride;
    stride *= sizes[index(*in)];
  }
  return 0;
}

/// A factor on a walk over all choices of some variables.
struct Walker {
  const double* here = nullptr;
  std::int64_t step = 0;                ///< of the variable that is eliminated
  std::vector<std::int64_t> strides{};  ///< per variable of the walk
};

void add_values(const Factor& factor, std::int64_t first, std::int64_t step, std::vector<double>& sums, double sign) {
  for (std::size_t choice = 0; choice < sums.size(); ++choice)
    sums[choice] += sign * factor.values[static_cast<std::size_t>(first + static_cast<std::int64_t>(choice) * step)];
}

}  // namespace

std::vector<int> elimination_order(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes) {
  const std::size_t count = sizes.size();
  Neighbours meets(count, std::vector<bool>(count));
  for (const std::vector<int>& scope : scopes) {
    for (const int a : scope) {
      for (const int b : scope) meets[index(a)][index(b)] = true;
    }
  }
  std::vector<bool> gone(count);
  std::vector<int> order;
  while (order.size() < count) {
    using Rank = std::tuple<std::int64_t, double, int>;
    Rank best{std::numeric_limits<std::int64_t>::max(), 0, -1};
    for (int variable = 0; variable < static_cast<int>(count); ++variable) {
      if (gone[index(variable)]) continue;
      const std::vector<int> group = around(meets, gone, variable);
      double entries = sizes[index(variable)];
      for (const int other : group) entries *= sizes[index(other)];
      best = std::min(best, Rank{pairs_to_join(meets, group), entries, variable});
    }
    const int next = std::get<int>(best);
    for (const int a : around(meets, gone, next)) {
      for (const int b : around(meets, gone, next)) meets[index(a)][index(b)] = true;
    }
    gone[index(next)] = true;
    order.push_back(next);
  }
  return order;
}

Elimination::Elimination(std::vector<int> sizes, std::vector<Factor> factors, std::vector<int> order,
                         std::int64_t most_entries)
    : sizes_(std::move(sizes)), position_(sizes_.size()), buckets_(sizes_.size()) {
  for (std::size_t place = 0; place < order.size(); ++place) position_[index(order[place])] = static_cast<int>(place);
  for (Factor& factor : factors) place(std::move(factor));
  for (const int variable : order) eliminate(variable, most_entries);
}

void Elimination::place(Factor factor) {
  if (factor.scope.empty()) {
    least_ += factor.values.front();
    return;
  }
  const int first = *std::min_element(factor.scope.begin(), factor.scope.end(),
                                      [&](int a, int b) { return position_[index(a)] < position_[index(b)]; });
  buckets_[index(first)].received.push_back(static_cast<int>(factors_.size()));
  factors_.push_back(std::move(factor));
}

void Elimination::eliminate(int variable, std::int64_t most_entries) {
  const std::vector<std::vector<int>> parts = parts_of(variable, most_entries);
  exact_ = exact_ && parts.size() <= 1;
  for (const std::vector<int>& part : parts) {
    Factor rest = without(variable, part);
    if (rest.scope.empty()) {
      buckets_[index(variable)].constant += rest.values.front();
    } else {
      buckets_[index(variable)].sent.push_back(static_cast<int>(factors_.size()));
    }
    place(std::move(rest));
  }
}

std::vector<int> Elimination::joint_scope(const std::vector<int>& joined, int variable) const {
  std::vector<int> scope;
  for (const int factor : joined) {
    for (const int other : factors_[index(factor)].scope) {
      if (other != variable && std::find(scope.begin(), scope.end(), other) == scope.end()) scope.push_back(other);
    }
  }
  std::sort(scope.begin(), scope.end());
  return scope;
}

std::int64_t Elimination::entries(const std::vector<int>& scope) const {
  constexpr std::int64_t many = std::int64_t{1} << 40;
  std::int64_t product = 1;
  for (const int variable : scope) product = std::min(many, product * sizes_[index(variable)]);
  return product;
}

/// Factors that are joined in one table, for each table: all of them where that is not too large, else as many as there
/// is room for, the largest first.
std::vector<std::vector<int>> Elimination::parts_of(int variable, std::int64_t most_entries) const {
  std::vector<int> all = buckets_[index(variable)].received;
  if (all.empty()) return {};
  const auto fits = [&](const std::vector<int>& part) {
    return entries(joint_scope(part, variable)) <= most_entries / sizes_[index(variable)];
  };
  if (fits(all)) return {all};
  std::stable_sort(all.begin(), all.end(),
                   [&](int a, int b) { return factors_[index(a)].values.size() > factors_[index(b)].values.size(); });
  std::vector<std::vector<int>> parts;
  for (const int factor : all) {
    const auto room = std::find_if(parts.begin(), parts.end(), [&](std::vector<int> part) {
      part.push_back(factor);
      return fits(part);
    });
    if (room == parts.end()) {
      parts.push_back({factor});
    } else {
      room->push_back(factor);
    }
  }
  return parts;
}

/// The least over a variable's choices of a sum of factors.
Factor Elimination::without(int variable, const std::vector<int>& joined) const {
  Factor result{.scope = joint_scope(joined, variable), .values = {}};
  result.values.resize(static_cast<std::size_t>(entries(result.scope)));
  std::vector<Walker> walkers;
  for (const int factor : joined) {
    const Factor& one = factors_[index(factor)];
    Walker walker{.here = one.values.data(), .step = stride_of(one, sizes_, variable)};
    for (const int other : result.scope) walker.strides.push_back(stride_of(one, sizes_, other));
    walkers.push_back(std::move(walker));
  }
  std::vector<int> at(result.scope.size());
  std::vector<double> sums(index(sizes_[index(variable)]));
  for (double& least : result.values) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (const Walker& walker : walkers) {
      const double* value = walker.here;
      for (double& sum : sums) {
        sum += *value;
        value += walker.step;
      }
    }
    least = *std::min_element(sums.begin(), sums.end());
    for (std::size_t digit = at.size(); digit-- > 0;) {
      const int size = sizes_[index(result.scope[digit])];
      const bool turns = ++at[digit] == size;
      for (Walker& walker : walkers) walker.here += walker.strides[digit] * (turns ? 1 - size : 1);
      if (!turns) break;
      at[digit] = 0;
    }
  }
  return result;
}

std::vector<double> Elimination::rises(int variable, const std::vector<int>& choices) const {
  std::vector<double> sums(index(sizes_[index(variable)]));
  const Bucket& bucket = buckets_[index(variable)];
  const auto add = [&](int number, double sign) {
    const Factor& factor = factors_[index(number)];
    std::int64_t first = 0;
    for (const int other : factor.scope) {
      first *= sizes_[index(other)];
      if (other != variable) first += choices[index(other)];
    }
    add_values(factor, first, stride_of(factor, sizes_, variable), sums, sign);
  };
  for (const int factor : bucket.received) add(factor, 1);
  for (const int factor : bucket.sent) add(factor, -1);
  for (double& sum : sums) sum -= bucket.constant;
  return sums;
}

}  // namespace orthant::planner
