#pragma once

#include "orthant/comm/neighbours.hpp"

#include <atomic>

namespace orthant::comm {

class Lifeline;

/// Memory that the ranks of one machine share, so that each knows what the others are doing even when MPI cannot tell:
/// which ranks wait, what they wait in, and which one prints its error. The memory has no name in any file system, so
/// nothing is left behind.
class Board {
 public:
  /// Collective.
  explicit Board(Comm& comm);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  /// The ranks of this machine in order; this one is members()[me()].
  [[nodiscard]] std::span<const Neighbour> members() const { return members_; }
  [[nodiscard]] std::size_t me() const { return me_; }
  /// The member that this one watches.
  [[nodiscard]] std::size_t next() const { return (me_ + 1) % members_.size(); }

  /// True for the first rank of the machine that calls it: that rank prints its error, and the others print nothing.
  /// Other machines are told through the lifeline, if there is one.
  bool claim();
  void connect(const Lifeline& lifeline) { lifeline_ = &lifeline; }
  /// Tells the others what this rank waits in, or nullptr when it does not wait. Cheap.
  void show(const char* what) noexcept;
  /// Tells the others that this rank is about to end because it was told to, which is nobody's failure.
  void take_leave() noexcept;
  [[nodiscard]] bool has_left(std::size_t member) const;
  /// What a member waits in; empty when it does not wait.
  [[nodiscard]] std::string shown(std::size_t member) const;

 private:
  struct Shared;
  [[nodiscard]] std::size_t bytes() const;

  std::vector<Neighbour> members_;
  std::size_t me_ = 0;
  Shared* shared_ = nullptr;
  std::atomic<const Lifeline*> lifeline_{nullptr};
};

}  // namespace orthant::comm
