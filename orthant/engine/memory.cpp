#include "orthant/engine/memory.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/machine.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace orthant::engine {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// The number in a file of one number; nothing if there is no such file or it says "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The group's path below the mount point of version 2, from a line "0::/path"; of version 1 from "5:memory:/path".
std::string group_path(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "/";
}

/// What "key number" lines say about `key`, as they stand in /proc/meminfo and memory.stat.
std::int64_t entry_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    std::int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return 0;
}

std::int64_t system_available_bytes() {
  const std::int64_t kibibytes = entry_in("/proc/meminfo", "MemAvailable:");
  return kibibytes > 0 ? kibibytes * 1024 : sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/// File pages that the kernel can drop count as used in a group, but are free to take.
std::int64_t room_in(const std::string& folder, const char* limit_name, const char* used_name, const char* cache_name) {
  const auto limit = number_in(folder + limit_name);
  const auto used = number_in(folder + used_name);
  if (!limit || !used) return unlimited;
  return std::max<std::int64_t>(*limit - *used + entry_in(folder + "memory.stat", cache_name), 0);
}

/// How much memory something leaves, and what that is: a control group's folder, or empty for the whole machine.
struct Room {
  std::int64_t bytes = unlimited;
  std::string folder{};
};

/// The group and the groups above it, innermost first: "/a/b", "/a", "/".
std::vector<std::string> with_parents(std::string path) {
  std::vector<std::string> paths;
  while (path.size() > 1) {
    paths.push_back(path);
    path.erase(std::max<std::size_t>(path.rfind('/'), 1));
  }
  paths.emplace_back("/");
  return paths;
}

/// The smallest amount that the group, the groups above it and the machine leave.
Room least_room() {
  Room least{.bytes = system_available_bytes()};
  const auto try_folder = [&](const std::string& folder, const char* limit, const char* used, const char* cache) {
    const std::int64_t bytes = room_in(folder + "/", limit, used, cache);
    if (bytes < least.bytes) least = {.bytes = bytes, .folder = folder};
  };
  for (const std::string& path : with_parents(group_path("")))
    try_folder("/sys/fs/cgroup" + path, "memory.max", "memory.current", "inactive_file");
  for (const std::string& path : with_parents(group_path("memory")))
    try_folder("/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
  return least;
}

std::int64_t address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

double gibibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// What every rank tells the others.
struct Claim {
  std::int64_t bytes = 0;
  std::int64_t available = 0;
  std::uint64_t folder = 0;
};

[[noreturn]] void fail_for_step(std::int64_t needed, std::int64_t available) {
  base::fail(base::Exit::does_not_fit,
             "the step needs {:.2f} GiB but {:.2f} GiB are available; use a smaller mini-batch or input, or a machine "
             "with more memory",
             gibibytes(needed), gibibytes(available));
}

}  // namespace

std::int64_t available_memory_bytes() { return std::min(least_room().bytes, address_space_bytes()); }

std::int64_t available_memory_bytes(comm::Comm& comm) {
  return available_memory_bytes() / static_cast<std::int64_t>(comm::ranks_of_machine(comm).size());
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

void check_machine_memory(comm::Comm& comm, const MemoryNeed& need) {
  const std::vector<int> here = comm::ranks_of_machine(comm);
  const bool counts_common = comm.sharing_ranks().front() == comm.rank();
  const Room room = least_room();
  Claim mine{.bytes = need.bytes - (counts_common ? 0 : need.common_bytes), .available = room.bytes};
  for (const char c : room.folder) mine.folder = base::keyed(mine.folder, static_cast<unsigned char>(c));
  const std::vector<Claim> claims = comm::all_gather(comm, mine);
  comm::agree(comm, [&] {
    if (need.bytes > address_space_bytes()) fail_for_step(need.bytes, address_space_bytes());
    std::vector<int> ranks;
    std::int64_t needed = 0;
    for (const int rank : here) {
      const Claim& claim = claims[static_cast<std::size_t>(rank)];
      if (claim.folder != mine.folder) continue;
      ranks.push_back(rank);
      needed = base::checked_add(needed, claim.bytes);
    }
    // What the first of them saw, so that all say the same.
    const std::int64_t available = claims[static_cast<std::size_t>(ranks.front())].available;
    if (needed <= available) return;
    if (ranks.size() == 1) fail_for_step(needed, available);
    base::fail(
        base::Exit::does_not_fit,
        "{} ranks on host '{}' need {:.2f} GiB together but {:.2f} GiB are available there; use fewer ranks on a "
        "host, a smaller mini-batch or input, or a machine with more memory",
        ranks.size(), comm::host_name(), gibibytes(needed), gibibytes(available));
  });
}

void check_memory(std::int64_t bytes) {
  const std::int64_t available = available_memory_bytes();
  if (bytes > available) fail_for_step(bytes, available);
}

void check_arena(const schedule::Placement& placement) { check_memory(placement.arena_bytes); }

}  // namespace orthant::engine
