#include "orthant/wrapper/measuring.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace orthant::wrapper {
namespace {

using Clock = std::chrono::steady_clock;

/// A try runs so many pieces that it takes at least this long, if there are so many.
constexpr double least_seconds = 0.002;
constexpr int rounds = 4;
/// What takes this many times as long per sample as the best is out, after the first round and later.
constexpr double hopeless = 1.6, behind = 1.2;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Entry {
  Way* way = nullptr;
  Cost cost{.piece_seconds = 1e30, .once_seconds = 1e30};
  std::int64_t next = 0;  ///< the sample with which the next try begins
  bool out = false;

  [[nodiscard]] double per_sample() const { return cost.piece_seconds / static_cast<double>(way->samples()); }
};

void try_once(Entry& entry, const Tensors& tensors, std::int64_t samples, std::byte* workspace) {
  Way& way = *entry.way;
  const Clock::time_point start = Clock::now();
  way.begin(tensors, workspace);
  double once = since(start);
  double spent = 0;
  int pieces = 0;
  do {
    if (entry.next + way.samples() > samples) entry.next = 0;
    const Clock::time_point begun = Clock::now();
    way.piece(tensors, entry.next, workspace);
    spent += since(begun);
    entry.next += way.samples();
    ++pieces;
  } while (spent < least_seconds && pieces * way.samples() < samples);
  const Clock::time_point ended = Clock::now();
  way.end(tensors, workspace, false);
  once += since(ended);
  entry.cost.piece_seconds = std::min(entry.cost.piece_seconds, spent / pieces);
  entry.cost.once_seconds = std::min(entry.cost.once_seconds, once);
}

}  // namespace

Label read_label(const std::string& label) {
  const std::size_t at = label.rfind('@');
  const auto cut = at == std::string::npos ? std::nullopt : cut_from(label.substr(at + 1));
  if (!cut) base::fail(base::Exit::bad_data, "'{}' is no kernel with a number of samples", label);
  return {label.substr(0, at), *cut};
}

Costs measure(const std::vector<Way*>& ways, const Tensors& tensors, std::int64_t samples, std::byte* workspace) {
  std::vector<Entry> entries;
  for (Way* way : ways) entries.push_back({.way = way});
  if (!entries.empty()) {
    Entry first = entries.front();  // so that the tensors and the workspace have their pages
    try_once(first, tensors, samples, workspace);
  }
  for (int round = 0; round < rounds; ++round) {
    for (Entry& entry : entries) {
      if (!entry.out) try_once(entry, tensors, samples, workspace);
    }
    double best = 1e30;
    for (const Entry& entry : entries) best = std::min(best, entry.per_sample());
    const double factor = round == 0 ? hopeless : behind;
    for (Entry& entry : entries) entry.out = entry.out || entry.per_sample() > factor * best;
  }
  Costs costs;
  for (const Entry& entry : entries) {
    Cost cost = entry.cost;
    cost.workspace_bytes = entry.way->workspace_bytes();
    costs[entry.way->label()] = cost;
  }
  return costs;
}

microbatch::Table table_of(const Costs& costs, std::int64_t samples) {
  microbatch::Table table{.samples = samples};
  for (const auto& [label, cost] : costs) {
    const Cut cut = read_label(label).cut;
    if (cut.samples > samples) continue;
    const double share = static_cast<double>(cut.samples) / static_cast<double>(samples);
    table.candidates.push_back({.algorithm = label,
                                .samples = cut.samples,
                                .slabs = cut.slabs,
                                .seconds = cost.piece_seconds + cost.once_seconds * share,
                                .workspace_bytes = cost.workspace_bytes});
  }
  return table;
}

}  // namespace orthant::wrapper
