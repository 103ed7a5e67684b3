#include "orthant/engine/memory.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/typed.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

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

/// The smallest amount that the group and the groups above it leave.
std::int64_t group_available_bytes() {
  std::int64_t least = unlimited;
  for (const std::string& path : {group_path(""), std::string("/")}) {
    least = std::min(least, room_in("/sys/fs/cgroup" + path + "/", "memory.max", "memory.current", "inactive_file"));
  }
  for (const std::string& path : {group_path("memory"), std::string("/")}) {
    least = std::min(least, room_in("/sys/fs/cgroup/memory" + path + "/", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", "total_inactive_file"));
  }
  return least;
}

std::int64_t address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

double gibibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

std::int64_t available_memory_bytes() {
  return std::min({system_available_bytes(), group_available_bytes(), address_space_bytes()});
}

std::int64_t available_memory_bytes(comm::Comm& comm) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::vector<std::array<char, 256>> hosts = comm::all_gather(comm, host);
  return available_memory_bytes() / std::count(hosts.begin(), hosts.end(), host);
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

void check_memory(std::int64_t bytes) {
  const std::int64_t available = available_memory_bytes();
  if (bytes <= available) return;
  base::fail(base::Exit::does_not_fit,
             "the step needs {:.2f} GiB but {:.2f} GiB are available; use a smaller mini-batch or input, or a machine "
             "with more memory",
             gibibytes(bytes), gibibytes(available));
}

void check_arena(const schedule::Placement& placement) { check_memory(placement.arena_bytes); }

}  // namespace orthant::engine
