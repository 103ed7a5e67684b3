#pragma once

#include <cstdint>
#include <vector>

namespace orthant::planner {

/// A function of the choices of some variables: one value per combination, the last variable's choice fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> values;
};

/// An order in which variables can be eliminated with small tables: each time the one that joins the fewest others anew
/// (min-fill), then the one with the smallest table, then the first.
std::vector<int> elimination_order(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes);

/// The least sum of factors, by bucket elimination: variables go one after the other, and what is left of each is a
/// table of the best that it can add to those that come later (Dechter, 1999). Where a table would be too large it is
/// cut into several, each with a choice of its own (mini-buckets), and the result is a lower bound.
class Elimination {
 public:
  /// `sizes` are the numbers of choices per variable; every variable is in `order` once.
  Elimination(std::vector<int> sizes, std::vector<Factor> factors, std::vector<int> order, std::int64_t most_entries);

  /// No sum is smaller; there is one that is not larger if no table was cut.
  [[nodiscard]] double least() const { return least_; }
  [[nodiscard]] bool exact() const { return exact_; }

  /// By how much the lower bound rises for each choice of a variable, if the variables after it in the order have the
  /// choices given: never below zero but for rounding, and zero for one choice if no table was cut.
  [[nodiscard]] std::vector<double> rises(int variable, const std::vector<int>& choices) const;

 private:
  struct Bucket {
    std::vector<int> received;  ///< factors whose first variable in the order this is
    std::vector<int> sent;      ///< what is left of them
    double constant = 0;        ///< and what depends on no other variable
  };
  void place(Factor factor);
  void eliminate(int variable, std::int64_t most_entries);
  [[nodiscard]] Factor without(int variable, const std::vector<int>& joined) const;
  [[nodiscard]] std::vector<int> joint_scope(const std::vector<int>& joined, int variable) const;
  [[nodiscard]] std::int64_t entries(const std::vector<int>& scope) const;
  [[nodiscard]] std::vector<std::vector<int>> parts_of(int variable, std::int64_t most_entries) const;

  std::vector<int> sizes_;
  std::vector<int> position_;  ///< per variable: its place in the order
  std::vector<Factor> factors_;
  std::vector<Bucket> buckets_;  ///< per variable
  double least_ = 0;
  bool exact_ = true;
};

}  // namespace orthant::planner
