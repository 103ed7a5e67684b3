#include "orthant/calibrate/median.hpp"
#include "orthant/calibrate/tasks.hpp"
#include "orthant/oracle/prices.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::calibrate {
namespace {

/// A way that is slower than the fastest by more than this need not be known exactly.
constexpr double close_ratio = 1.5;
constexpr std::int64_t close_runs = 3;
/// How many passes run every step in its fastest way: at least, at most, and for how long between these.
constexpr int least_passes = 3, most_passes = 9;
constexpr double enough_seconds = 3;
/// The relative errors of one run, and of many that agree.
constexpr double single_error = 0.1, least_error = 0.003;

}  // namespace

Passes::Passes(const std::vector<ReplayStep>& steps, const TaskTimes& known) : steps_(steps) {
  std::map<std::string, std::size_t> by_key;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    std::vector<Runs> ways;
    std::string all;
    for (const Way& way : steps[step].ways) {
      ways.push_back({.key = oracle::task_key(way.task)});
      all += ways.back().key + "\n";
    }
    const auto [found, is_new] = by_key.try_emplace(all, groups_.size());
    if (is_new) groups_.push_back({.ways = std::move(ways)});
    groups_[found->second].steps.push_back(step);
    group_of_.push_back(found->second);
    seconds_.emplace_back(steps[step].ways.size());
  }
  for (Group& group : groups_) {
    for (std::size_t way = 0; way < group.ways.size(); ++way) {
      Runs& runs = group.ways[way];
      const auto measured = known.find(runs.key);
      runs.known = measured != known.end();
      has_news_ = has_news_ || !runs.known;
      if (runs.known) runs.least = measured->second.seconds;
      if (runs.least < group.ways[group.best].least) group.best = way;
    }
  }
}

bool Passes::wants(const Group& group, const Runs& runs) {
  if (runs.known || runs.count >= close_runs) return false;
  return runs.count == 0 || runs.least <= close_ratio * group.ways[group.best].least;
}

std::size_t Passes::way(std::size_t step) const {
  const Group& group = groups_[group_of_[step]];
  std::size_t chosen = group.best;
  bool found = false;
  for (std::size_t way = 0; way < group.ways.size(); ++way) {
    if (!wants(group, group.ways[way])) continue;
    if (!found || group.ways[way].count < group.ways[chosen].count) chosen = way;
    found = true;
  }
  return chosen;
}

void Passes::note(std::size_t step, std::size_t way, double seconds) {
  Group& group = groups_[group_of_[step]];
  seconds_[step][way].push_back(seconds);
  Runs& runs = group.ways[way];
  ++runs.count;
  runs.least = std::min(runs.least, seconds);
  if (runs.least < group.ways[group.best].least) group.best = way;
}

bool Passes::wants_another(double pass_seconds) {
  const bool open = std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return std::any_of(group.ways.begin(), group.ways.end(), [&](const Runs& runs) { return wants(group, runs); });
  });
  if (open) return true;
  ++settled_passes_;
  settled_seconds_ += pass_seconds;
  return settled_passes_ <= least_passes || (settled_passes_ < most_passes && settled_seconds_ < enough_seconds);
}

TaskTimes Passes::results() const {
  TaskTimes results;
  for (const Group& group : groups_) {
    for (std::size_t way = 0; way < group.ways.size(); ++way) {
      if (group.ways[way].known || group.ways[way].count == 0) continue;
      // Equal tasks find different caches: their mean is what they add to a step.
      double sum = 0;
      int places = 0;
      std::vector<double> deviations;
      for (const std::size_t step : group.steps) {
        const std::vector<double>& runs = seconds_[step][way];
        if (runs.empty()) continue;
        const double middle = median(runs);
        sum += middle;
        ++places;
        for (const double seconds : runs) deviations.push_back(std::abs(seconds - middle) / middle);
      }
      // For normally distributed times this is the standard deviation.
      const double spread = 1.4826 * median(deviations);
      const Way& one = steps_[group.steps.front()].ways[way];
      results[group.ways[way].key] = {.features = oracle::features_of(one.task),
                                      .seconds = sum / places,
                                      .error = deviations.size() < 3 ? single_error : std::max(spread, least_error),
                                      .scratch_bytes = one.primitive->scratch_bytes()};
    }
  }
  return results;
}

}  // namespace orthant::calibrate
