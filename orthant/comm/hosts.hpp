#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthant::comm {

/// A machine that ranks are started on, and how many of them.
struct Host {
  std::string name;
  int slots = 1;
  friend bool operator==(const Host&, const Host&) = default;
};

/// Reads "a:2,b:2"; a host without a number has one slot. Throws Error (64) for anything else.
std::vector<Host> parse_hosts(const std::string& text);

/// Reads a host file of Open MPI: a line "name slots=2" for each host, comments after '#'. A host without a number has
/// one slot. `path` is for messages; throws Error (65).
std::vector<Host> parse_host_file(std::string_view text, const std::string& path);

int total_slots(std::span<const Host> hosts);

/// The hosts that `ranks` ranks need, with the slots that they take: each host is filled before the next one. Throws
/// Error (71) if there are too few slots.
std::vector<Host> hosts_for(std::span<const Host> hosts, int ranks);

/// "a:2,b:2"
std::string to_text(std::span<const Host> hosts);

/// Whether the name or address means this machine.
bool is_this_machine(const std::string& name);

}  // namespace orthant::comm
