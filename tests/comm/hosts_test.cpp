#include "orthant/comm/hosts.hpp"

#include "tests/data/temporary.hpp"

#include <unistd.h>

namespace orthant::comm {
namespace {

using base::Exit;
using test::expect_error;
using Hosts = std::vector<Host>;

TEST(Hosts, NamesHaveSlotsOrOne) {
  EXPECT_EQ(parse_hosts("node1:2"), (Hosts{{"node1", 2}}));
  EXPECT_EQ(parse_hosts("a,b.c-d:12,10.0.0.3"), (Hosts{{"a", 1}, {"b.c-d", 12}, {"10.0.0.3", 1}}));
  EXPECT_EQ(to_text(parse_hosts("a,b:3")), "a:1,b:3");
}

TEST(Hosts, WhatIsNoListIsRefused) {
  for (const char* text : {"", ",", "a,", ",a", ":2", "a b:2", "-a:2", "a;b", "$(a)"})
    expect_error(Exit::usage, "is no host; use e.g. --hosts node1:2,node2:2", [&] { parse_hosts(text); });
  for (const char* text : {"a:", "a:0", "a:-1", "a:x", "a:2x", "a:2:3", "a:1.5", "a:99999999999999999999"})
    expect_error(Exit::usage, "has no number of slots", [&] { parse_hosts(text); });
  expect_error(Exit::usage, "'a' is there twice; name it once", [] { parse_hosts("a:1,b,a:2"); });
  expect_error(Exit::usage, "at most 1048576 ranks", [] { total_slots(parse_hosts("a:1048576,b:1")); });
}

TEST(Hosts, FilesAreReadAsOpenMpiReadsThem) {
  const char* text = "# our machines\n\nnode1 slots=2\n  node2   slots = 4 max_slots=8  # the large one\r\nnode3\n";
  EXPECT_EQ(parse_host_file(text, "hosts"), (Hosts{{"node1", 2}, {"node2", 4}, {"node3", 1}}));
}

TEST(Hosts, FilesWithMistakesAreRefusedWithTheLine) {
  const auto expect_refusal = [](const char* text, const std::string& message) {
    expect_error(Exit::bad_data, message, [&] { parse_host_file(text, "my-hosts"); });
  };
  expect_refusal("", "'my-hosts' names no host");
  expect_refusal("# nothing\n \n", "'my-hosts' names no host");
  expect_refusal("node1\nnode2 slots=0\n", "my-hosts:2: 'slots=0' is not understood");
  expect_refusal("node1 slots\n", "my-hosts:1: 'slots' is not understood");
  expect_refusal("node1 slots=\n", "my-hosts:1: 'slots=' is not understood");
  expect_refusal("node1 cores=4\n", "my-hosts:1: 'cores=4' is not understood");
  expect_refusal("node1:4\n", "my-hosts:1: 'node1:4' is no host");
  expect_refusal("slots=4\n", "my-hosts:1: 'slots=4' is no host");
  expect_refusal("a\nb\na slots=2\n", "my-hosts:3: 'a' is there twice");
}

TEST(Hosts, AreFilledInOrder) {
  const Hosts hosts{{"a", 2}, {"b", 3}, {"c", 1}};
  EXPECT_EQ(total_slots(hosts), 6);
  EXPECT_EQ(hosts_for(hosts, 1), (Hosts{{"a", 1}}));
  EXPECT_EQ(hosts_for(hosts, 4), (Hosts{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(hosts_for(hosts, 6), hosts);
  expect_error(Exit::does_not_fit,
               "8 ranks need as many slots, but a:2,b:3,c:1 has 6; name more hosts, or more slots as in a:4",
               [&] { hosts_for(hosts, 8); });
}

TEST(Hosts, ThisMachineIsKnownByNameAndAddress) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  EXPECT_TRUE(is_this_machine(name.data()));
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_FALSE(is_this_machine("198.51.100.7"));
}

}  // namespace
}  // namespace orthant::comm
