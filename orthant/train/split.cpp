#include "orthant/train/split.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace orthant::train {
namespace {

/// Keeps the random numbers of splits apart from other uses of the seed.
constexpr std::uint64_t stream = 0x7A11D;

/// The number of every sample's group, counted in the order in which they appear.
std::vector<std::size_t> groups_of(const data::sets::Dataset& dataset) {
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> groups;
  for (std::int64_t sample = 0; sample < dataset.samples(); ++sample)
    groups.push_back(known.try_emplace(group_of(dataset.name(sample)), known.size()).first->second);
  return groups;
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t key) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[base::keyed(key, i) % i]);
  return order;
}

/// Where "_d0_h64_w0" begins that ends at `end`; npos if there is none.
std::size_t cube_mark(std::string_view name, std::size_t end) {
  for (const std::string_view mark : {"_w", "_h", "_d"}) {
    const std::size_t digits = name.substr(0, end).find_last_not_of("0123456789") + 1;
    if (digits == end || !name.substr(0, digits).ends_with(mark)) return std::string_view::npos;
    end = digits - mark.size();
  }
  return end;
}

}  // namespace

std::string group_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  for (std::size_t dot = name.find('.', slash == std::string::npos ? 0 : slash); dot != std::string::npos;
       dot = name.find('.', dot + 1)) {
    if (const std::size_t end = cube_mark(name, dot); end != std::string_view::npos) return name.substr(0, end);
  }
  return name;
}

Split split_samples(const data::sets::Dataset& dataset, double fraction, std::uint64_t seed) {
  const std::vector<std::size_t> groups = groups_of(dataset);
  const std::size_t count = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
  if (count < 2) {
    base::fail(base::Exit::bad_data,
               "the data has {} that can be set aside for validation as a whole; at least 2 are needed",
               count == 1 ? "only one sample or universe" : "no sample");
  }
  const auto wanted = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(count)));
  const std::vector<std::size_t> order = shuffled(count, base::keyed(seed, stream));
  std::vector<bool> set_aside(count);
  for (std::size_t i = 0; i < std::clamp<std::size_t>(wanted, 1, count - 1); ++i) set_aside[order[i]] = true;
  Split split;
  for (std::size_t sample = 0; sample < groups.size(); ++sample)
    (set_aside[groups[sample]] ? split.validation : split.training).push_back(static_cast<std::int64_t>(sample));
  return split;
}

}  // namespace orthant::train
