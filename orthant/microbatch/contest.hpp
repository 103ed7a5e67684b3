#pragma once

#include <functional>
#include <optional>

namespace orthant::microbatch {

/// Candidates for one task, the rule's first. Nothing here knows a clock: the functions do.
struct Contest {
  int candidates = 1;
  std::function<double(int)> seconds;         ///< tries a candidate once
  std::function<bool(double)> allows;         ///< whether there is time for a try that takes so many seconds
  std::function<bool(double)> allows_closer;  ///< the same for tries that only look closer
};

struct Winner {
  int candidate = 0;
  double seconds = 0;
};

/// The fastest candidate by the shortest of its tries. They are tried in turns, so that what disturbs the machine for a
/// while disturbs all; those that fall far behind are tried no more, and a close finish is looked at again. The rule's
/// candidate is replaced only by one that is clearly faster. Nothing if there was no time to compare all.
std::optional<Winner> fastest(const Contest& contest);

}  // namespace orthant::microbatch
