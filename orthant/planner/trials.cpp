#include "orthant/planner/trials.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <limits>

namespace orthant::planner {
namespace {

/// About three seconds.
constexpr std::int64_t all_effort = 1'000'000;

/// Of the ranks of a plan that are followed.
constexpr std::int64_t most_messages = 100'000;

int ranks_together(const oracle::Profile& profile, const PlanningOptions& options) {
  const int room = options.step.ranks_per_machine > 0 ? options.step.ranks_per_machine : profile.ranks_per_machine;
  return std::clamp(room, 1, options.ranks);
}

double memory_of(const oracle::Profile& profile, const PlanningOptions& options, int together) {
  if (options.memory_bytes_per_rank > 0) return static_cast<double>(options.memory_bytes_per_rank);
  if (profile.memory_bytes > 0) return static_cast<double>(profile.memory_bytes) / together;
  return std::numeric_limits<double>::infinity();
}

}  // namespace

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  if (a.fits) return a.prediction.seconds < b.prediction.seconds;
  return a.prediction.memory.total() < b.prediction.memory.total();
}

Trials::Trials(const model::Graph& graph, const oracle::Profile& profile, const PlanningOptions& options)
    : graph_(graph),
      options_(options),
      ranks_per_machine_(ranks_together(profile, options)),
      prices_(profile, options.step.threads > 0 ? options.step.threads : profile.threads_per_rank, ranks_per_machine_),
      memory_bytes_(memory_of(profile, options, ranks_per_machine_)),
      effort_left_(all_effort) {
  if (options_.step.most_messages == 0) options_.step.most_messages = most_messages;
}

Network Trials::network() const {
  return {.profile = prices_.profile(),
          .machines = plan::Machines::alike(options_.ranks, ranks_per_machine_),
          .ranks_per_machine = ranks_per_machine_};
}

Candidate Trials::predicted(const std::string& name, plan::Plan plan) {
  Candidate candidate{.name = name, .plan = std::move(plan)};
  candidate.prediction = oracle::predict(graph_, candidate.plan, prices_, options_.step);
  candidate.fits = static_cast<double>(candidate.prediction.memory.total()) <= memory_bytes_;
  effort_left_ -= candidate.prediction.size;
  tried_.push_back(candidate);
  if (!has_best() || is_better(candidate, best_)) best_ = candidate;
  return candidate;
}

Candidate Trials::attempt(const std::string& name, const std::function<plan::Plan()>& make) {
  try {
    plan::Plan plan = make();
    const auto known = std::find_if(tried_.begin(), tried_.end(), [&](const auto& one) { return one.plan == plan; });
    if (known == tried_.end()) return predicted(name, std::move(plan));
    Candidate same = *known;
    same.name = name;
    return same;
  } catch (const base::Error& error) {
    return {.name = name, .refused = error.what()};
  }
}

std::optional<Candidate> Trials::afford(const std::string& name, const plan::Plan& plan) {
  const bool known = std::any_of(tried_.begin(), tried_.end(), [&](const auto& one) { return one.plan == plan; });
  if (known || effort_left_ <= 0) return {};
  Candidate candidate = attempt(name, [&] { return plan; });
  return candidate.refused.empty() ? std::optional(std::move(candidate)) : std::nullopt;
}

}  // namespace orthant::planner
