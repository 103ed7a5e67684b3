#pragma once

#include "orthant/comm/comm.hpp"

#include <array>
#include <chrono>
#include <string>

namespace orthant::comm {

/// Connections between machines on which nothing is sent as long as all is well, so that the system itself tells when a
/// host is gone: at once if all its processes end, and after link_timeout() if the machine or its network no longer
/// answers. The first rank of each machine makes one to that of the next machine, in a ring; all ranks of the machine
/// hold both ends, so that they break with the last of them only.
class Lifeline {
 public:
  /// Collective. Machines that cannot connect to each other do not watch each other.
  explicit Lifeline(Comm& comm);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  ~Lifeline();

  /// The sockets that this rank has to watch: -1 where there is nothing to watch, and on all ranks but the first of a
  /// machine.
  [[nodiscard]] std::array<int, 2> files() const;
  /// Whether the connection with this socket is gone without a leave, and the host with it; says which host and why, or
  /// nothing. After an answer other than nothing the connection is not watched any more.
  std::string loss(int file);
  /// Tells the other machines that this one is about to end and that they need not wonder.
  void take_leave() const noexcept;

 private:
  struct Peer {
    int file = -1;
    bool is_watched = false;
    std::string name;  ///< "host 'node2' (ranks 2, 3)"
  };
  std::array<Peer, 2> peers_;  ///< the previous and the next machine
};

/// ORTHANT_LINK_SECONDS, or 10: how long a machine may be silent.
std::chrono::seconds link_timeout();

}  // namespace orthant::comm
