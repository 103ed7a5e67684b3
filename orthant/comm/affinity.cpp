#include "orthant/comm/affinity.hpp"

#include "orthant/base/format.hpp"

#include <sched.h>

#include <fstream>
#include <map>

namespace orthant::comm {

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  // The call fails if the machine has more processors than the set can hold, so the set grows until it is large enough.
  for (int capacity = CPU_SETSIZE; capacity <= 64 * CPU_SETSIZE; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int i = 0; i < capacity; ++i)
        if (CPU_ISSET_S(static_cast<std::size_t>(i), bytes, set)) allowed.push_back(i);
    }
    CPU_FREE(set);
    if (!allowed.empty()) break;
  }
  return allowed;
}

std::vector<std::vector<int>> allowed_cores() {
  std::vector<std::vector<int>> cores;
  std::map<std::string, std::size_t> known;
  for (const int processor : allowed_processors()) {
    std::string siblings;
    std::getline(std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor)),
                 siblings);
    if (siblings.empty()) siblings = fmt::format("{}", processor);
    const auto [at, is_new] = known.emplace(siblings, cores.size());
    if (is_new) cores.emplace_back();
    cores[at->second].push_back(processor);
  }
  return cores;
}

void bind_to(std::span<const int> processors) {
  if (processors.empty()) return;
  const auto capacity = static_cast<std::size_t>(processors.back()) + 1;
  cpu_set_t* set = CPU_ALLOC(capacity);
  const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
  CPU_ZERO_S(bytes, set);
  for (const int processor : processors) CPU_SET_S(static_cast<std::size_t>(processor), bytes, set);
  // An unbound rank is slower, but not wrong.
  (void)sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

std::string ranges_text(std::span<const int> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace orthant::comm
