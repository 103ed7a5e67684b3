#pragma once

#include "orthant/planner/cuts.hpp"
#include "orthant/planner/search.hpp"

namespace orthant::planner {

/// The costs of all candidate cuts of a network, and what choices of them mean.
class Tables {
 public:
  /// `cuts` are the candidates per group. The prices must outlive it.
  Tables(std::vector<std::vector<int>> groups, std::vector<std::vector<tensor::Grid>> cuts, CutPrices& prices);

  /// A variable per group, a pair per two groups of which one reads the other. `exposed` is the share of the sums of
  /// gradients that is waited for.
  [[nodiscard]] Problem problem(double exposed) const;
  /// The plan of a combination of choices, for so many ranks.
  [[nodiscard]] plan::Plan plan(const std::vector<int>& choices, int ranks, double exposed) const;
  /// The choices that come nearest to a plan; nothing if it has a cut that is no candidate.
  [[nodiscard]] std::optional<std::vector<int>> choices_of(const plan::Plan& plan) const;

  [[nodiscard]] const std::vector<std::vector<int>>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<std::vector<tensor::Grid>>& cuts() const { return cuts_; }

 private:
  [[nodiscard]] const Priced& layer(int node, std::size_t source, const tensor::Grid& from, const tensor::Grid& grid,
                                    double exposed) const;
  void add_readings(Problem& problem, double exposed) const;

  std::vector<std::vector<int>> groups_;
  std::vector<std::vector<tensor::Grid>> cuts_;
  std::vector<int> group_of_;  ///< per node
  CutPrices* prices_;
};

}  // namespace orthant::planner
