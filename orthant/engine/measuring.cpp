#include "orthant/engine/measuring.hpp"

#include "orthant/microbatch/contest.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::engine {
namespace {

using model::Algorithm;
using model::ConvTask;

double total_flops(const schedule::Schedule& schedule) {
  double flops = 0;
  for (const schedule::Step& step : schedule.steps) flops += static_cast<double>(schedule::flops(step));
  return flops;
}

/// Enough for any of the candidates.
std::int64_t scratch_bytes(const std::vector<kernels::ConvCandidate>& candidates) {
  std::int64_t bytes = 64;
  for (const auto& candidate : candidates) bytes = std::max(bytes, candidate.primitive->scratch_bytes());
  return bytes;
}

}  // namespace

const ConvTask* open_conv(const schedule::Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  const auto* conv = task ? std::get_if<ConvTask>(task) : nullptr;
  return conv && conv->algorithm == Algorithm::automatic ? conv : nullptr;
}

std::vector<OpenTask> open_tasks(const schedule::Schedule& schedule, const ChooseOptions& options) {
  std::map<std::string, OpenTask> by_key;
  for (const schedule::Step& step : schedule.steps) {
    const ConvTask* conv = open_conv(step);
    if (!conv) continue;
    OpenTask task{.key = choice_key(*conv, options.threads, options.errors),
                  .step = &step,
                  .flops = static_cast<double>(schedule::flops(step))};
    ++by_key.try_emplace(task.key, task).first->second.times;
  }
  std::vector<OpenTask> tasks;
  tasks.reserve(by_key.size());
  for (const auto& [key, task] : by_key) tasks.push_back(task);
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const OpenTask& a, const OpenTask& b) { return a.step_flops() > b.step_flops(); });
  return tasks;
}

ConvTask tried_part(const ConvTask& task, const ChooseOptions& options) {
  constexpr std::int64_t samples_per_thread = 16;
  const std::int64_t samples = samples_per_thread * options.threads;
  const bool is_short = static_cast<double>(model::flops(task)) <= options.whole_flops * options.threads;
  if (is_short || task.src.extents.n < 2 * samples) return task;
  ConvTask part = task;
  part.src.extents.n = samples;
  part.dst.extents.n = samples;
  return part;
}

Measuring::Measuring(const schedule::Schedule& schedule, const ChooseOptions& options)
    : schedule_(schedule), options_(options), time_(options.limits, total_flops(schedule), options.now) {}

void Measuring::know(const OpenTask& task, const Choice& choice) {
  time_.note(task.key, task.step_flops(), choice.seconds * task.times);
}

Choices Measuring::run(const std::vector<OpenTask>& tasks) {
  Choices choices;
  progress_ = {.tasks = static_cast<int>(tasks.size()), .limits = options_.limits};
  for (const OpenTask& task : tasks) flops_left_ += task.step_flops();
  for (const OpenTask& task : tasks) {
    report();
    const std::optional<Choice> choice = choose(task);
    choices.emplace(task.key, choice.value_or(Choice{}));
    flops_left_ -= task.step_flops();
    flops_done_ += task.step_flops();
    if (choice) ++progress_.done;
  }
  if (!tasks.empty()) report();
  return choices;
}

void Measuring::report() {
  const double at_this_pace = flops_done_ > 0 ? flops_left_ / flops_done_ * time_.spent() : 1e30;
  progress_.seconds_left = std::max(0.0, std::min(time_.left(), at_this_pace));
  options_.progress(progress_);
}

std::optional<Choice> Measuring::choose(const OpenTask& task) {
  // A comparison that cannot be finished in time is not started.
  constexpr int likely_runs = 4;
  const ConvTask part = tried_part(*open_conv(*task.step), options_);
  if (likely_runs * time_.seconds_for(static_cast<double>(model::flops(part))) > time_.left()) return std::nullopt;
  const std::int64_t bytes = step_bytes(schedule_, *task.step);
  if (bytes > *options_.most_bytes) return std::nullopt;
  const auto candidates = kernels::conv_candidates(part, options_.threads, options_.errors);
  if (bytes + scratch_bytes(candidates) > *options_.most_bytes) return std::nullopt;
  return compare(task, part, candidates);
}

std::optional<Choice> Measuring::compare(const OpenTask& task, const ConvTask& part,
                                         const std::vector<kernels::ConvCandidate>& candidates) {
  const ConvTask& whole = *open_conv(*task.step);
  const double parts = static_cast<double>(whole.src.extents.n) / static_cast<double>(part.src.extents.n);
  const double start = time_.spent();
  const double share = time_.left() * task.step_flops() / flops_left_;
  const StepMemory memory(schedule_, *task.step);
  const Arena scratch(scratch_bytes(candidates));
  std::memset(scratch.data(), 0,
              static_cast<std::size_t>(scratch.bytes()));  // so that the first run has no page faults
  double least = 1e30;
  const auto run = [&](int i) {
    const auto& candidate = candidates[static_cast<std::size_t>(i)];
    const auto execute = [&] { candidate.primitive->execute({}, memory.arguments(), scratch.data()); };
    const double seconds = options_.seconds(part, candidate.algorithm, execute);
    least = std::min(least, seconds);
    time_.note(task.key, task.step_flops(), least * parts * task.times);
    return seconds;
  };
  const auto winner = microbatch::fastest(
      {.candidates = static_cast<int>(candidates.size()),
       .seconds = run,
       .allows = [&](double seconds) { return seconds <= time_.left(); },
       .allows_closer =
           [&](double seconds) { return time_.spent() - start + seconds <= std::min(share, time_.left()); }});
  if (!winner) return std::nullopt;
  Choice choice{candidates[static_cast<std::size_t>(winner->candidate)].algorithm, winner->seconds * parts, 0};
  ConvTask chosen = whole;
  chosen.algorithm = choice.algorithm;
  choice.scratch_bytes = kernels::make_primitive(chosen, options_.threads)->scratch_bytes();
  return choice;
}

}  // namespace orthant::engine
