#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace orthant::comm {

/// Where a process can be reached: its port on all addresses (IPv4, in network order) of its machine.
struct Addresses {
  std::array<std::uint32_t, 8> hosts{};  ///< 0: none
  std::uint16_t port = 0;                ///< in network order; 0: nowhere
};

/// A socket that others connect to.
class Listener {
 public:
  /// Without `is_open`, or if there is no network, it is reached by nobody.
  explicit Listener(bool is_open);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] Addresses addresses() const;
  /// Waits some seconds for a connection that begins with this token, and tells the other side; -1 if there is none.
  [[nodiscard]] int accept(std::uint64_t token) const;

 private:
  int file_ = -1;
};

/// Connects to as many of the addresses as answer within some seconds, and sends the token to each. All but one of
/// these may be other processes that happen to have the same address and port.
std::vector<int> connect_to(const Addresses& addresses, std::uint64_t token);
/// Waits some seconds for the connection that Listener::accept took, and closes the others; -1 if there is none.
int first_accepted(const std::vector<int>& connections);

/// From now on the connection breaks if the other machine does not answer for so long.
void keep_alive(int connection, std::chrono::seconds timeout);

}  // namespace orthant::comm
