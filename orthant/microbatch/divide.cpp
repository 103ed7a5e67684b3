#include "orthant/microbatch/divide.hpp"

#include <algorithm>

namespace orthant::microbatch {
namespace {

/// A division of some samples: one candidate, and an entry of the front of the samples that are left. The pieces are
/// put together when all is known.
struct Entry {
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  const Candidate* piece = nullptr;
  std::size_t rest = 0;  ///< in the front of what is left
};

/// Sorted by workspace, with strictly decreasing time.
using Front = std::vector<Entry>;

bool is_better(const Entry& a, const Entry& b) {
  return a.workspace_bytes != b.workspace_bytes ? a.workspace_bytes < b.workspace_bytes : a.seconds < b.seconds;
}

Front pruned(Front all) {
  std::stable_sort(all.begin(), all.end(), is_better);
  Front front;
  for (const Entry& entry : all) {
    if (front.empty() || entry.seconds < front.back().seconds) front.push_back(entry);
  }
  return front;
}

class Search {
 public:
  Search(const Table& table, std::int64_t limit_bytes)
      : table_(table), by_samples_(static_cast<std::size_t>(table.samples) + 1) {
    for (const Candidate& candidate : table.candidates) {
      const bool fits = candidate.samples >= 1 && candidate.samples <= table.samples;
      if (fits && candidate.workspace_bytes <= limit_bytes) by_samples_[index(candidate.samples)].push_back(&candidate);
    }
    for (auto& list : by_samples_) keep_best(list);
  }

  std::vector<Division> run() {
    // Whatever comes after the first piece can be put in any order, so the smallest one may come next.
    rests_.resize(by_samples_.size());
    rests_[0] = {Entry{}};
    for (std::int64_t samples = 1; samples < table_.samples; ++samples)
      rests_[index(samples)] = front_of(samples, samples / 2, false);
    const Front front = front_of(table_.samples, table_.samples - 1, true);
    std::vector<Division> divisions;
    divisions.reserve(front.size());
    for (const Entry& entry : front) divisions.push_back(division(entry));
    return divisions;
  }

 private:
  static std::size_t index(std::int64_t samples) { return static_cast<std::size_t>(samples); }

  /// Drops candidates that others of as many samples beat in time and workspace and that are not more restricted.
  static void keep_best(std::vector<const Candidate*>& list) {
    const auto beats = [](const Candidate& a, const Candidate& b) {
      return a.workspace_bytes <= b.workspace_bytes && a.seconds <= b.seconds && (b.first_only || !a.first_only);
    };
    std::vector<const Candidate*> kept;
    for (const Candidate* one : list) {
      if (std::any_of(kept.begin(), kept.end(), [&](const Candidate* other) { return beats(*other, *one); })) continue;
      std::erase_if(kept, [&](const Candidate* other) { return beats(*one, *other); });
      kept.push_back(one);
    }
    list = std::move(kept);
  }

  /// One piece of at most `most`, or of all samples, and the best for the rest.
  Front front_of(std::int64_t samples, std::int64_t most, bool is_first) {
    Front all;
    const auto add = [&](std::int64_t size) {
      for (const Candidate* piece : by_samples_[index(size)]) {
        if (piece->first_only && !is_first) continue;
        const Front& rest = rests_[index(samples - size)];
        for (std::size_t i = 0; i < rest.size(); ++i)
          all.push_back(
              {piece->seconds + rest[i].seconds, std::max(piece->workspace_bytes, rest[i].workspace_bytes), piece, i});
      }
    };
    add(samples);
    for (std::int64_t size = 1; size <= most; ++size) add(size);
    return pruned(std::move(all));
  }

  Division division(const Entry& last) {
    Division division{.seconds = last.seconds, .workspace_bytes = last.workspace_bytes};
    std::int64_t left = table_.samples;
    for (const Entry* entry = &last; entry->piece != nullptr;) {
      division.pieces.push_back(*entry->piece);
      left -= entry->piece->samples;
      entry = &rests_[index(left)][entry->rest];
    }
    // The largest first: it has the memory to itself, and a first piece that cannot be added to others stays first.
    std::stable_sort(division.pieces.begin(), division.pieces.end(), [](const Candidate& a, const Candidate& b) {
      return a.first_only != b.first_only ? a.first_only : a.samples > b.samples;
    });
    return division;
  }

  const Table& table_;
  std::vector<std::vector<const Candidate*>> by_samples_;
  std::vector<Front> rests_;  ///< by number of samples: divisions into pieces none of which needs to be first
};

}  // namespace

std::vector<Division> pareto_front(const Table& table, std::int64_t limit_bytes) {
  return Search(table, limit_bytes).run();
}

std::optional<Division> within_limit(const Table& table, std::int64_t limit_bytes) {
  std::vector<Division> front = pareto_front(table, limit_bytes);
  if (front.empty()) return std::nullopt;
  return std::move(front.back());
}

const Division* within_limit(std::span<const Division> front, std::int64_t limit_bytes) {
  const auto end =
      std::find_if(front.begin(), front.end(), [&](const Division& one) { return one.workspace_bytes > limit_bytes; });
  return end == front.begin() ? nullptr : &*std::prev(end);
}

}  // namespace orthant::microbatch
