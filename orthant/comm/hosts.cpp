#include "orthant/comm/hosts.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

constexpr int most_slots = 1 << 20;

std::optional<int> slots_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most_slots)
    return std::nullopt;
  return number;
}

/// Names go to mpirun and to a launch agent, so what a shell or they could take for something else is refused.
bool is_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@';
  });
}

const Host* find_twin(std::span<const Host> hosts) {
  std::set<std::string_view> names;
  for (const Host& host : hosts)
    if (!names.insert(host.name).second) return &host;
  return nullptr;
}

/// One host of --hosts.
Host parse_host(std::string_view word) {
  const std::size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  if (!is_name(name)) fail(Exit::usage, "--hosts: '{}' is no host; use e.g. --hosts node1:2,node2:2", word);
  if (colon == std::string_view::npos) return {.name = std::string(name)};
  const std::optional<int> slots = slots_in(word.substr(colon + 1));
  if (!slots)
    fail(Exit::usage, "--hosts: '{}' has no number of slots after the colon; use 1 to {}, e.g. {}:2", word, most_slots,
         name);
  return {.name = std::string(name), .slots = *slots};
}

/// One line of a host file, without its comment.
Host parse_line(std::string line, const std::string& where) {
  // Open MPI allows spaces around '='.
  for (std::size_t i = 0; (i = line.find('=', i)) != std::string::npos; ++i) {
    while (i + 1 < line.size() && std::isspace(static_cast<unsigned char>(line[i + 1])) != 0) line.erase(i + 1, 1);
    while (i > 0 && std::isspace(static_cast<unsigned char>(line[i - 1])) != 0) line.erase(--i, 1);
  }
  std::istringstream words(line);
  Host host;
  words >> host.name;
  if (!is_name(host.name)) fail(Exit::bad_data, "{}: '{}' is no host; write e.g. node1 slots=2", where, host.name);
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (key == "max_slots" || key == "max-slots") continue;
    const std::optional<int> slots =
        key == "slots" && key.size() < word.size() ? slots_in(word.substr(key.size() + 1)) : std::nullopt;
    if (!slots)
      fail(Exit::bad_data, "{}: '{}' is not understood; write e.g. {} slots=2, with 1 to {} slots", where, word,
           host.name, most_slots);
    host.slots = *slots;
  }
  return host;
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address != nullptr && address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::set<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::set<std::string> addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) addresses.insert(address_text(one->ifa_addr));
  addresses.erase("");
  return addresses;
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& text) {
  std::vector<Host> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    hosts.push_back(parse_host(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  if (const Host* twin = find_twin(hosts))
    fail(Exit::usage, "--hosts: '{}' is there twice; name it once, with all its slots", twin->name);
  return hosts;
}

std::vector<Host> parse_host_file(std::string_view text, const std::string& path) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c) != 0; })) continue;
    hosts.push_back(parse_line(line, fmt::format("{}:{}", path, number)));
    if (find_twin(hosts))
      fail(Exit::bad_data, "{}:{}: '{}' is there twice; name it once, with all its slots", path, number,
           hosts.back().name);
  }
  if (hosts.empty()) fail(Exit::bad_data, "'{}' names no host; write a line for each, e.g. node1 slots=2", path);
  return hosts;
}

int total_slots(std::span<const Host> hosts) {
  std::int64_t total = 0;
  for (const Host& host : hosts) total += host.slots;
  if (total > most_slots)
    fail(Exit::usage, "the hosts have {} slots; at most {} ranks are possible", total, most_slots);
  return static_cast<int>(total);
}

std::vector<Host> hosts_for(std::span<const Host> hosts, int ranks) {
  const int slots = total_slots(hosts);
  if (slots < ranks)
    fail(Exit::does_not_fit, "{} ranks need as many slots, but {} has {}; name more hosts, or more slots as in {}:{}",
         ranks, to_text(hosts), slots, hosts.front().name, hosts.front().slots + ranks - slots);
  std::vector<Host> filled;
  for (const Host& host : hosts) {
    if (ranks == 0) break;
    filled.push_back({.name = host.name, .slots = std::min(host.slots, ranks)});
    ranks -= filled.back().slots;
  }
  return filled;
}

std::string to_text(std::span<const Host> hosts) {
  std::string text;
  for (const Host& host : hosts) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

bool is_this_machine(const std::string& name) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string mine(host.data());
  if (name == "localhost" || name == mine || name == mine.substr(0, mine.find('.'))) return true;
  addrinfo* first = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, nullptr, &first) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, &freeaddrinfo);
  const std::set<std::string> own = own_addresses();
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next)
    if (own.contains(address_text(one->ai_addr))) return true;
  return false;
}

}  // namespace orthant::comm
