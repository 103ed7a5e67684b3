#pragma once

#include "orthant/comm/comm.hpp"

#include <sys/types.h>

namespace orthant::comm {

/// Memory that the ranks of one machine share, so that they can tell what the others do when MPI cannot: who waits,
/// where, and whose error is the one to print. It has no name in any file system, so nothing stays behind.
class Board {
 public:
  struct Member {
    int rank = 0;
    pid_t pid = 0;
  };

  /// Collective.
  explicit Board(Comm& comm);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  /// The ranks of this machine in order; this one is members()[me()].
  [[nodiscard]] std::span<const Member> members() const { return members_; }
  [[nodiscard]] std::size_t me() const { return me_; }

  /// True for the first rank of the machine that asks: it prints its error, the others keep quiet.
  bool claim();
  /// What this rank waits in, or nullptr when it does not wait. Cheap.
  void show(const char* what) noexcept;
  /// What a member waits in; empty when it does not wait.
  [[nodiscard]] std::string shown(std::size_t member) const;

 private:
  struct Shared;
  [[nodiscard]] std::size_t bytes() const;

  std::vector<Member> members_;
  std::size_t me_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace orthant::comm
