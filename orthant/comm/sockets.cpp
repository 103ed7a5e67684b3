#include "orthant/comm/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace orthant::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds connect_patience{3};
constexpr std::chrono::seconds accept_patience{10};
constexpr char accepted = 'y';

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// Reads exactly so many bytes.
bool read_all(int file, char* bytes, std::size_t count, Clock::time_point end) {
  while (count > 0) {
    pollfd entry{file, POLLIN, 0};
    if (::poll(&entry, 1, milliseconds_until(end)) <= 0) return false;
    const ssize_t got = ::recv(file, bytes, count, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) {
      bytes += got;
      count -= static_cast<std::size_t>(got);
    }
  }
  return true;
}

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = port;
  return address;
}

int start_to_connect(const sockaddr_in& address) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  if (::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EINPROGRESS)
    return file;
  close(file);
  return -1;
}

bool is_connected(int file) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

Listener::Listener(bool is_open) {
  if (!is_open) return;
  file_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file_ >= 0 && ::listen(file_, 16) != 0) {
    close(file_);
    file_ = -1;
  }
}

Listener::~Listener() {
  if (file_ >= 0) close(file_);
}

Addresses Listener::addresses() const {
  Addresses result;
  sockaddr_in mine{};
  socklen_t size = sizeof(mine);
  ifaddrs* first = nullptr;
  if (file_ < 0 || getsockname(file_, reinterpret_cast<sockaddr*>(&mine), &size) != 0 || getifaddrs(&first) != 0)
    return result;
  result.port = mine.sin_port;
  std::size_t count = 0;
  for (const ifaddrs* one = first; one != nullptr && count < result.hosts.size(); one = one->ifa_next) {
    const bool is_usable = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
                           (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (is_usable) result.hosts[count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(first);
  return result;
}

int Listener::accept(std::uint64_t token) const {
  const Clock::time_point end = Clock::now() + accept_patience;
  pollfd entry{file_, POLLIN, 0};
  while (file_ >= 0 && ::poll(&entry, 1, milliseconds_until(end)) > 0) {
    const int file = ::accept4(file_, nullptr, nullptr, SOCK_CLOEXEC);
    if (file < 0) continue;
    std::uint64_t found = 0;
    const Clock::time_point soon = std::min(end, Clock::now() + std::chrono::seconds(1));
    if (read_all(file, reinterpret_cast<char*>(&found), sizeof(found), soon) && found == token &&
        ::send(file, &accepted, 1, MSG_NOSIGNAL) == 1)
      return file;
    close(file);
  }
  return -1;
}

std::vector<int> connect_to(const Addresses& addresses, std::uint64_t token) {
  const Clock::time_point end = Clock::now() + connect_patience;
  std::vector<pollfd> open;
  for (const std::uint32_t host : addresses.hosts) {
    const int file = host == 0 || addresses.port == 0 ? -1 : start_to_connect(address_of(host, addresses.port));
    if (file >= 0) open.push_back({file, POLLOUT, 0});
  }
  std::vector<int> connections;
  while (!open.empty() && ::poll(open.data(), open.size(), milliseconds_until(end)) > 0) {
    for (const pollfd& entry : open) {
      if (entry.revents == 0) continue;
      if (is_connected(entry.fd) && ::send(entry.fd, &token, sizeof(token), MSG_NOSIGNAL) == sizeof(token)) {
        connections.push_back(entry.fd);
      } else {
        close(entry.fd);
      }
    }
    std::erase_if(open, [](const pollfd& entry) { return entry.revents != 0; });
    // One that works is enough; an address that never answers is not worth a wait.
    if (!connections.empty()) break;
  }
  for (const pollfd& entry : open) close(entry.fd);
  return connections;
}

int first_accepted(const std::vector<int>& connections) {
  const Clock::time_point end = Clock::now() + accept_patience;
  std::vector<pollfd> open;
  for (const int file : connections) open.push_back({file, POLLIN, 0});
  int found = -1;
  while (found < 0 && !open.empty() && ::poll(open.data(), open.size(), milliseconds_until(end)) > 0) {
    for (pollfd& entry : open) {
      char answer = 0;
      if (entry.revents == 0 || found >= 0) continue;
      if (::recv(entry.fd, &answer, 1, MSG_DONTWAIT) == 1 && answer == accepted) {
        found = entry.fd;
      } else {
        close(entry.fd);
      }
      entry.fd = -1;
    }
    std::erase_if(open, [](const pollfd& entry) { return entry.fd < 0; });
  }
  for (const pollfd& entry : open) close(entry.fd);
  return found;
}

void keep_alive(int connection, std::chrono::seconds timeout) {
  constexpr int probes = 3;
  const auto seconds = static_cast<int>(timeout.count());
  const int interval = std::max(1, seconds / 5);
  const int idle = std::max(1, seconds - probes * interval);
  const int on = 1;
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

}  // namespace orthant::comm
