#pragma once

#include "orthant/tensor/box.hpp"

#include <vector>

namespace orthant::plan {

/// The machines that ranks run on. The ranks of a machine are consecutive.
class Machines {
 public:
  /// Every rank has a machine of its own.
  Machines() = default;
  /// So many ranks on each machine, in order; ranks beyond them have machines of their own.
  explicit Machines(const std::vector<int>& ranks_per_machine);
  /// `ranks` of them, `per_machine` on each but perhaps the last.
  static Machines alike(int ranks, int per_machine);

  /// The ranks of the machine of `rank`.
  [[nodiscard]] tensor::Range neighbours(int rank) const;

  bool operator==(const Machines&) const = default;

 private:
  std::vector<int> ends_;  ///< per machine: one past its last rank
};

}  // namespace orthant::plan
