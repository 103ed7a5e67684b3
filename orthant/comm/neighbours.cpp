#include "orthant/comm/neighbours.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/typed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace orthant::comm {
namespace {

/// Equal for processes that see each other's pids and have the same network: a network namespace is a machine.
std::uint64_t machine_key() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  for (const char* path : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    std::array<char, 64> space{};
    if (readlink(path, space.data(), space.size() - 1) > 0) text += space.data();
  }
  std::uint64_t key = 0;
  for (const char c : text) key = base::keyed(key, static_cast<unsigned char>(c));
  return key;
}

}  // namespace

std::vector<Neighbour> neighbours(Comm& comm) {
  struct Identity {
    std::uint64_t machine = 0;
    pid_t pid = 0;
  };
  const std::uint64_t mine = machine_key();
  const std::vector<Identity> all = all_gather(comm, Identity{.machine = mine, .pid = getpid()});
  std::vector<Neighbour> here;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Identity& one = all[static_cast<std::size_t>(rank)];
    if (one.machine == mine) here.push_back({.rank = rank, .pid = one.pid});
  }
  return here;
}

const Neighbour* find_neighbour(std::span<const Neighbour> neighbours, int rank) {
  const auto found =
      std::find_if(neighbours.begin(), neighbours.end(), [&](const Neighbour& one) { return one.rank == rank; });
  return found == neighbours.end() ? nullptr : &*found;
}

bool can_open_files(Comm& comm, std::span<const Neighbour> neighbours) {
  const int file = memfd_create("orthant-probe", MFD_CLOEXEC);
  const std::vector<int> files = all_gather(comm, file);
  bool is_possible = true;
  for (const Neighbour& one : neighbours) {
    const int opened = open_file_of(one.pid, files[static_cast<std::size_t>(one.rank)], O_RDONLY);
    if (opened < 0) is_possible = false;
    if (opened >= 0) close(opened);
  }
  const std::vector<int> answers = all_gather(comm, is_possible ? 1 : 0);
  if (file >= 0) close(file);
  return std::all_of(neighbours.begin(), neighbours.end(),
                     [&](const Neighbour& one) { return answers[static_cast<std::size_t>(one.rank)] == 1; });
}

int open_file_of(pid_t pid, int file, int flags) {
  return open(fmt::format("/proc/{}/fd/{}", pid, file).c_str(), flags | O_CLOEXEC);
}

}  // namespace orthant::comm
