#pragma once

#include "orthant/planner/cut_prices.hpp"
#include "orthant/planner/planner.hpp"

#include <functional>

namespace orthant::planner {

/// Plans that were lowered, placed and timed whole, the best of them, and how much more may be tried. Effort counts
/// steps and messages, so that it is the same on every machine.
class Trials {
 public:
  Trials(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options);

  [[nodiscard]] const oracle::Prices& prices() const { return prices_; }
  /// Who talks to whom how fast; it refers to the profile.
  [[nodiscard]] Network network() const;
  /// Of a rank, for all that it needs; infinite if nothing is known.
  [[nodiscard]] double memory_bytes() const { return memory_bytes_; }

  /// Predicts a plan, or what `make` throws instead of making one. A plan that was tried before is not predicted again.
  Candidate attempt(const std::string& name, const std::function<plan::Plan()>& make);
  /// The same; only if there is effort left. Nothing otherwise, or if the plan was tried before.
  std::optional<Candidate> afford(const std::string& name, const plan::Plan& plan);

  /// The fastest that fits; the one that needs least memory if none does. Among equals the first.
  [[nodiscard]] const Candidate& best() const { return best_; }
  [[nodiscard]] bool has_best() const { return best_.refused.empty() && best_.prediction.seconds > 0; }
  [[nodiscard]] int predicted() const { return static_cast<int>(tried_.size()); }

 private:
  Candidate predicted(const std::string& name, plan::Plan plan);

  const model::Graph& graph_;
  PlanningOptions options_;
  int ranks_per_machine_;
  oracle::Prices prices_;
  double memory_bytes_;
  std::vector<Candidate> tried_;
  Candidate best_{.refused = "nothing was tried"};
  std::int64_t effort_left_;
};

/// True if `a` is the better of two that can run.
bool is_better(const Candidate& a, const Candidate& b);

}  // namespace orthant::planner
