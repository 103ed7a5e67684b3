#include "orthant/comm/machine.hpp"

#include "orthant/base/random.hpp"
#include "orthant/comm/affinity.hpp"
#include "orthant/comm/typed.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace orthant::comm {
namespace {

/// Processors with higher numbers count as shared by all ranks of the machine.
constexpr std::size_t told_processors = 2048;

/// What every rank tells the others.
struct Place {
  std::uint64_t machine = 0;
  std::array<std::uint64_t, told_processors / 64> processors{};
};

std::uint64_t machine_of_process() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  text += host_name();
  std::uint64_t key = 0;
  for (const char c : text) key = base::keyed(key, static_cast<unsigned char>(c));
  return key;
}

bool may_run_on(const Place& place, int processor) {
  const auto number = static_cast<std::size_t>(processor);
  return number >= told_processors || (place.processors[number / 64] >> (number % 64) & 1) != 0;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::vector<int> ranks_of_machine(Comm& comm) {
  const std::uint64_t mine = machine_of_process();
  const std::vector<std::uint64_t> all = all_gather(comm, mine);
  std::vector<int> ranks;
  for (int rank = 0; rank < comm.size(); ++rank)
    if (all[static_cast<std::size_t>(rank)] == mine) ranks.push_back(rank);
  return ranks;
}

ProcessorShare processor_share(Comm& comm) {
  const std::vector<int> allowed = allowed_processors();
  Place mine{.machine = machine_of_process()};
  for (const int processor : allowed) {
    const auto number = static_cast<std::size_t>(processor);
    if (number < told_processors) mine.processors[number / 64] |= std::uint64_t{1} << (number % 64);
  }
  std::vector<Place> here;
  ProcessorShare share;
  const std::vector<Place> all = all_gather(comm, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].machine != mine.machine) continue;
    if (static_cast<int>(rank) == comm.rank()) share.index = static_cast<int>(here.size());
    here.push_back(all[rank]);
  }
  share.ranks = static_cast<int>(here.size());
  double part = 0;
  bool is_shared = false;
  for (const int processor : allowed) {
    const auto users =
        std::count_if(here.begin(), here.end(), [&](const Place& one) { return may_run_on(one, processor); });
    part += 1.0 / static_cast<double>(users);
    is_shared = is_shared || users > 1;
  }
  // Thirds and the like do not add up exactly.
  share.threads = std::max(1, static_cast<int>(part + 1e-6));
  share.is_less_than_one = part + 1e-6 < 1;
  share.is_bound = share.ranks > 1 && !is_shared;
  return share;
}

void bind_to_share(const ProcessorShare& share, int threads) {
  if (share.is_bound) return;
  const std::vector<std::vector<int>> cores = allowed_cores();
  std::vector<int> places;
  const auto first = static_cast<std::size_t>(share.index) * static_cast<std::size_t>(threads);
  const auto count = static_cast<std::size_t>(threads);
  if (static_cast<std::size_t>(share.ranks) * count <= cores.size()) {
    for (std::size_t core = first; core < first + count; ++core)
      places.insert(places.end(), cores[core].begin(), cores[core].end());
  } else {
    std::vector<int> processors;
    for (const std::vector<int>& core : cores) processors.insert(processors.end(), core.begin(), core.end());
    if (static_cast<std::size_t>(share.ranks) * count > processors.size()) return;
    places.assign(processors.begin() + static_cast<std::ptrdiff_t>(first),
                  processors.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  std::sort(places.begin(), places.end());
  bind_to(places);
}

}  // namespace orthant::comm
