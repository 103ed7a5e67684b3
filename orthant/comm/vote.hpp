#pragma once

namespace orthant::comm {

/// A question to all ranks that is answered while they compute: is there one that says yes?
class Vote {
 public:
  Vote() = default;
  Vote(const Vote&) = delete;
  Vote& operator=(const Vote&) = delete;
  virtual ~Vote() = default;

  /// Collective. Says what this rank wants and returns at once. The vote before must have been counted.
  virtual void start(bool mine) = 0;
  /// Collective. True on all ranks if one of them said so. Waits for ranks that have not started the vote.
  virtual bool result() = 0;
};

}  // namespace orthant::comm
