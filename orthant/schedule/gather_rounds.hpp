#pragma once

#include "orthant/plan/plan.hpp"
#include "orthant/schedule/schedule.hpp"
#include "orthant/tensor/moves.hpp"

#include <optional>
#include <vector>

namespace orthant::schedule {

/// Ranks that hold the blocks of a tensor and want all of it, each of them. The adjoint: all have partial sums of all
/// blocks, and each of them gets the sum of its own.
struct GatherGroup {
  std::vector<int> members;        ///< in rising order
  int place = 0;                   ///< of this rank
  std::vector<tensor::Box> boxes;  ///< per member; empty where it holds nothing
};

/// The group of a rank that gathers in rounds; nothing if what is wanted is something else, or if the form for so many
/// ranks is direct. All ranks come to the same conclusion.
std::optional<GatherGroup> gather_group(const tensor::Redistribution& boxes, int rank, const plan::GroupForm& form);

/// The blocks of a group one after the other, in an order in which what a round sends lies together. Members beyond the
/// smooth part lean on others, and their blocks follow those of the others.
class GatherOrder {
 public:
  explicit GatherOrder(const GatherGroup& group);

  /// The items of a member's block.
  [[nodiscard]] const tensor::Range& block(int member) const { return blocks_[static_cast<std::size_t>(member)]; }
  /// The blocks of `size` members that lean on nobody, from `first` on, with those that lean on them.
  [[nodiscard]] tensor::Range blocks(int first, int size) const {
    return {begins_[static_cast<std::size_t>(first)], begins_[static_cast<std::size_t>(first + size)]};
  }
  [[nodiscard]] int smooth() const { return static_cast<int>(begins_.size()) - 1; }
  [[nodiscard]] std::int64_t items() const { return begins_.back(); }

 private:
  std::vector<tensor::Range> blocks_;
  std::vector<std::int64_t> begins_;  ///< per member that leans on nobody; last the end
};

/// Doubling: after the rounds all blocks lie in `buffer`, where each member put its own before. Items are floats.
std::vector<Round> gather_rounds(const GatherGroup& group, const GatherOrder& order, const Piece& buffer);

/// Halving: what all members have of this rank's block is added up in place; other blocks have partial sums then. What
/// arrives goes through `staging`, which takes so many bytes.
struct ScatterRounds {
  std::vector<Round> rounds;
  std::int64_t staging_bytes = 0;
};
ScatterRounds scatter_rounds(const GatherGroup& group, const GatherOrder& order, const Piece& buffer, int staging);

}  // namespace orthant::schedule
