#include "orthant/microbatch/contest.hpp"

#include <algorithm>
#include <vector>

namespace orthant::microbatch {
namespace {

constexpr double never = 1e30;
constexpr int most_rounds = 8;
/// In a long try most disturbances average out; there is time for few long tries.
constexpr double long_seconds = 0.1;
/// A candidate is out if it takes this many times as long as the best: after one try, after a long try, after several.
constexpr double hopeless = 2, hopeless_if_long = 1.3, behind = 1.25;
/// Shortest tries differ by this much from one measurement to the next.
constexpr double noise = 0.03;
/// If the best two are closer than this, more rounds may change their order.
constexpr double close_finish = 0.06;

struct Entry {
  double least = never;
  int tries = 0;
  bool out = false;
};

class Rounds {
 public:
  explicit Rounds(const Contest& contest) : contest_(contest), entries_(static_cast<std::size_t>(contest.candidates)) {}

  std::optional<Winner> run() {
    for (int round = 0; round < most_rounds; ++round) {
      const bool needed = round == 0 || (!is_alone() && round < needed_rounds());
      if (!needed && is_decided()) break;
      if (round_ends_early(needed)) return needed ? std::nullopt : std::optional(winner());
      drop_hopeless(round);
    }
    return winner();
  }

 private:
  [[nodiscard]] int needed_rounds() const { return best_ < long_seconds ? 3 : 2; }
  [[nodiscard]] bool is_alone() const {
    return std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.out; }) == 1;
  }

  [[nodiscard]] bool is_decided() const {
    if (is_alone()) return best_ >= long_seconds || find_best().tries > 1;
    const auto near = [&](const Entry& entry) { return entry.least < best_ * (1 + close_finish); };
    return std::count_if(entries_.begin(), entries_.end(), near) == 1;
  }

  /// True if the time was up before all had their turn.
  bool round_ends_early(bool needed) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (entry.out) continue;
      if (!(needed ? contest_.allows : contest_.allows_closer)(expected_seconds(entry))) return true;
      entry.least = std::min(entry.least, contest_.seconds(static_cast<int>(i)));
      ++entry.tries;
      best_ = std::min(best_, entry.least);
    }
    return false;
  }

  /// One that has not been tried yet may be hopeless.
  [[nodiscard]] double expected_seconds(const Entry& entry) const {
    if (entry.tries > 0) return entry.least;
    return best_ < never ? hopeless * best_ : 0;
  }

  void drop_hopeless(int round) {
    const double factor = round > 0 ? behind : best_ < long_seconds ? hopeless : hopeless_if_long;
    for (Entry& entry : entries_) entry.out = entry.out || entry.least > factor * best_;
  }

  [[nodiscard]] const Entry& find_best() const {
    return *std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.least < b.least; });
  }

  [[nodiscard]] Winner winner() const {
    const Entry& rule = entries_.front();
    if (rule.least * (1 - noise) <= best_) return {.candidate = 0, .seconds = rule.least};
    return {.candidate = static_cast<int>(&find_best() - entries_.data()), .seconds = best_};
  }

  const Contest& contest_;
  std::vector<Entry> entries_;
  double best_ = never;
};

}  // namespace

std::optional<Winner> fastest(const Contest& contest) { return Rounds(contest).run(); }

}  // namespace orthant::microbatch
