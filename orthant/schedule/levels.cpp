#include "orthant/schedule/levels.hpp"

#include <algorithm>
#include <array>

namespace orthant::schedule {
namespace {

constexpr std::array small_primes{2, 3, 5, 7};

bool is_smooth(int number) {
  for (const int prime : small_primes) {
    while (number % prime == 0) number /= prime;
  }
  return number == 1;
}

}  // namespace

std::vector<int> members_per_machine(const std::vector<int>& members, const plan::Machines& machines, bool two_levels) {
  std::vector<int> counts;
  for (std::size_t i = 0; i < members.size();) {
    const std::size_t begin = i;
    const std::int64_t end = two_levels ? machines.neighbours(members[i]).hi : members[i] + 1;
    while (i < members.size() && members[i] < end) ++i;
    counts.push_back(static_cast<int>(i - begin));
  }
  return counts;
}

Levels levels_of(const tensor::RankGroup& group, int rank, const plan::Machines& machines, bool two_levels) {
  Levels levels;
  if (!two_levels || group.size() == 1 || machines == plan::Machines()) {
    levels.inside = Members(std::vector{rank});
    levels.across = Members(group);
    levels.across_place = group.place_of(rank);
    levels.machines = group.size();
    return levels;
  }
  const std::vector<int> members = group.to_list();
  const std::vector<int> counts = members_per_machine(members, machines, two_levels);
  std::vector<std::size_t> begins;
  std::size_t end = 0;
  for (const int count : counts) {
    begins.push_back(end);
    end += static_cast<std::size_t>(count);
  }
  const auto own = static_cast<std::size_t>(group.place_of(rank));
  const auto machine =
      static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), own) - begins.begin() - 1);
  const std::size_t machine_count = begins.size();
  begins.push_back(members.size());
  levels.inside = Members(std::vector(members.begin() + static_cast<std::ptrdiff_t>(begins[machine]),
                                      members.begin() + static_cast<std::ptrdiff_t>(begins[machine + 1])));
  levels.inside_place = static_cast<int>(own - begins[machine]);
  levels.machines = static_cast<int>(machine_count);
  levels.active = *std::min_element(counts.begin(), counts.end());
  if (!levels.is_active()) return levels;
  std::vector<int> across;
  for (std::size_t i = 0; i < machine_count; ++i)
    across.push_back(members[begins[i] + static_cast<std::size_t>(levels.inside_place)]);
  levels.across = Members(std::move(across));
  levels.across_place = static_cast<int>(machine);
  return levels;
}

int smooth_part(int count) {
  while (!is_smooth(count)) --count;
  return count;
}

int adding_part(int count, const plan::GroupForm& form) {
  // Of a tree, the one that the others lean on included.
  constexpr int most_together = 16;
  switch (form.of(count)) {
    case plan::Form::direct: return count;
    case plan::Form::tree: return smooth_part((count + most_together - 1) / most_together);
    default: return smooth_part(count);
  }
}

std::vector<int> factors_of(int smooth) {
  std::vector<int> factors;
  for (const int prime : small_primes) {
    for (; smooth % prime == 0; smooth /= prime) factors.push_back(prime);
  }
  return factors;
}

std::vector<Split> splits_of(int smooth, int member) {
  std::vector<Split> splits;
  int first = 0;
  int size = smooth;
  for (const int factor : factors_of(smooth)) {
    size /= factor;
    const int digit = (member - first) / size;
    splits.push_back({.first = first, .size = size, .count = factor, .digit = digit});
    first += digit * size;
  }
  return splits;
}

}  // namespace orthant::schedule
