#pragma once

#include "orthant/plan/plan.hpp"
#include "orthant/schedule/levels.hpp"
#include "orthant/schedule/schedule.hpp"

namespace orthant::schedule {

/// The rounds after which every member of a group has the sum of a few doubles of all, in the same order of additions
/// on all members and so with the same bits. They need a buffer of slots, each of which takes one set of doubles.
struct SumRounds {
  int slots = 0;
  int own_slot = 0;  ///< where this rank's doubles are to be when the rounds start
  std::vector<Round> rounds;
};

/// `slots` and `result` are the buffers; `count` doubles go into each slot and into the result.
SumRounds sum_rounds(const Levels& levels, const plan::GroupForm& form, std::int64_t count, int slots, int result);

}  // namespace orthant::schedule
