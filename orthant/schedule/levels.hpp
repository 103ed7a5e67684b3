#pragma once

#include "orthant/plan/machines.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/tensor/rank_group.hpp"

#include <utility>
#include <vector>

namespace orthant::schedule {

/// Ranks in rising order: a whole group, which is arithmetic, or a list of some.
class Members {
 public:
  Members() = default;
  explicit Members(const tensor::RankGroup& group) : group_(group), size_(group.size()) {}
  explicit Members(std::vector<int> ranks) : size_(static_cast<int>(ranks.size())), ranks_(std::move(ranks)) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] int operator[](int place) const {
    return ranks_.empty() ? group_[place] : ranks_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] std::vector<int> to_list() const { return ranks_.empty() ? group_.to_list() : ranks_; }

 private:
  tensor::RankGroup group_;
  int size_ = 0;
  std::vector<int> ranks_;  ///< empty: those of the group
};

/// The members of a group as one of them sees them. Those of its machine exchange first; then, among all machines,
/// those that have the same place on theirs.
struct Levels {
  Members inside;  ///< the members on this rank's machine
  int inside_place = 0;
  /// So many members of every machine, its first ones, take part in what goes between machines: as many as the machine
  /// with the fewest has.
  int active = 1;
  int machines = 1;  ///< that have members
  Members across;    ///< the members of all machines with this rank's place; empty if it is not active
  int across_place = -1;

  [[nodiscard]] bool is_active() const { return inside_place < active; }
};

/// How many of the members, which are in rising order, each machine has. With one level every rank counts as a machine.
std::vector<int> members_per_machine(const std::vector<int>& members, const plan::Machines& machines, bool two_levels);

/// With one level every rank counts as a machine of its own.
Levels levels_of(const tensor::RankGroup& group, int rank, const plan::Machines& machines, bool two_levels);

/// The largest number up to `count` that has no prime factor above 7. Members beyond it hand what they have to one of
/// the others and get the result from it, so that every exchange is a product of small ones.
int smooth_part(int count);
/// How many members of a group add up among each other, in any form but `mpi`. The others lean on them: member i on
/// member i modulo this number.
int adding_part(int count, const plan::GroupForm& form);
/// Its prime factors, the smallest first.
std::vector<int> factors_of(int smooth);

/// The blocks of members that a recursive exchange goes through: `count` of `size` members each, that of the member in
/// question is `digit`, and the one of `digit` 0 begins with member `first`.
struct Split {
  int first = 0, size = 1, count = 1, digit = 0;
};

/// From a smooth number of members down to one. The first splits are into the most distant ones.
std::vector<Split> splits_of(int smooth, int member);

}  // namespace orthant::schedule
