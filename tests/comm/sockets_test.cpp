#include "orthant/comm/sockets.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orthant::comm {
namespace {

/// The listener as its own machine reaches it, whatever other addresses that has.
Addresses local(const Listener& listener) {
  Addresses addresses{.port = listener.addresses().port};
  addresses.hosts[0] = htonl(INADDR_LOOPBACK);
  return addresses;
}

TEST(Sockets, ConnectionWithTheTokenIsTaken) {
  const Listener listener(true);
  const std::vector<int> strangers = connect_to(local(listener), 1);
  const std::vector<int> tries = connect_to(local(listener), 2);
  ASSERT_EQ(tries.size(), 1U);

  const int here = listener.accept(2);
  const int there = first_accepted(tries);

  ASSERT_GE(here, 0);
  EXPECT_EQ(there, tries.front());
  EXPECT_EQ(first_accepted(strangers), -1);
  keep_alive(here, std::chrono::seconds(10));
  int on = 0;
  socklen_t size = sizeof(on);
  getsockopt(here, SOL_SOCKET, SO_KEEPALIVE, &on, &size);
  EXPECT_EQ(on, 1);
  close(here);
  char byte = 0;
  EXPECT_EQ(recv(there, &byte, 1, 0), 0);
  close(there);
}

TEST(Sockets, NobodyIsReachedWhereNobodyListens) {
  EXPECT_TRUE(connect_to(Listener(false).addresses(), 1).empty());
  Addresses gone;
  {
    const Listener listener(true);
    gone = local(listener);
  }
  EXPECT_TRUE(connect_to(gone, 1).empty());
  EXPECT_EQ(first_accepted({}), -1);
}

}  // namespace
}  // namespace orthant::comm
