#pragma once

namespace orthant::comm {

/// Questions to all ranks, one per bit, that are answered while they do something else: is there one that says yes?
class Vote {
 public:
  Vote() = default;
  Vote(const Vote&) = delete;
  Vote& operator=(const Vote&) = delete;
  virtual ~Vote() = default;

  /// Collective. Says what this rank wants and returns at once. The vote before must have been counted.
  virtual void start(unsigned mine) = 0;
  /// Collective. On all ranks the bits that one of them has set. Waits for ranks that have not started the vote.
  virtual unsigned result() = 0;
};

}  // namespace orthant::comm
