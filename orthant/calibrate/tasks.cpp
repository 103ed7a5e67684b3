#include "orthant/calibrate/tasks.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/denormals.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace orthant::calibrate {
namespace {

/// One line per task; names of tasks have spaces, but no tabs.
std::string to_lines(const TaskTimes& times) {
  std::string text;
  for (const auto& [key, one] : times) {
    text += fmt::format("{}\t{}\t{} {} {} {} {}", key, one.features.family, one.features.flops, one.features.bytes,
                        one.seconds, one.error, one.scratch_bytes);
    for (const double extent : one.features.extents) text += fmt::format(" {}", extent);
    text += "\n";
  }
  return text;
}

std::vector<std::pair<std::string, oracle::MeasuredTask>> from_lines(const std::string& text) {
  std::vector<std::pair<std::string, oracle::MeasuredTask>> times;
  std::istringstream lines(text);
  std::string key, numbers;
  oracle::MeasuredTask one;
  while (std::getline(lines, key, '\t') && std::getline(lines, one.features.family, '\t') &&
         std::getline(lines, numbers)) {
    std::istringstream words(numbers);
    words >> one.features.flops >> one.features.bytes >> one.seconds >> one.error >> one.scratch_bytes;
    one.features.extents.clear();
    for (double extent = 0; words >> extent;) one.features.extents.push_back(extent);
    times.emplace_back(key, one);
  }
  return times;
}

/// Of what several ranks measured, the longest counts: ranks with equal work wait for the slowest of them.
std::string longest_lines(const std::vector<std::vector<char>>& parts) {
  TaskTimes longest;
  for (const std::vector<char>& part : parts) {
    for (const auto& [key, one] : from_lines({part.begin(), part.end()})) {
      oracle::MeasuredTask& task = longest.try_emplace(key, one).first->second;
      task.seconds = std::max(task.seconds, one.seconds);
      task.error = std::max(task.error, one.error);
      task.scratch_bytes = std::max(task.scratch_bytes, one.scratch_bytes);
    }
  }
  return to_lines(longest);
}

/// Collective. What all ranks measured, on all of them.
TaskTimes joined(const TaskTimes& mine, comm::Comm& comm) {
  const std::string lines = to_lines(mine);
  const auto parts = comm::gather(comm, std::span<const char>(lines), 0);
  TaskTimes all;
  for (auto& [key, one] : from_lines(comm::on_root(comm, [&] { return longest_lines(parts); }))) all[key] = one;
  return all;
}

/// Runs passes on this rank.
class Runner {
 public:
  Runner(Replay& replay, Passes& passes, const TaskOptions& options)
      : replay_(replay), passes_(passes), options_(options) {}

  /// Without taking notes: the first pass finds nothing in any cache.
  void warm_up() {
    for (std::size_t step = 0; step < replay_.steps().size(); ++step) replay_.execute(step, 0);
  }
  /// Seconds of the steps.
  double pass() {
    double sum = 0;
    for (std::size_t step = 0; step < replay_.steps().size(); ++step) {
      const std::size_t way = passes_.way(step);
      const double seconds = options_.timed(replay_.steps()[step].ways[way].task, [&] { replay_.execute(step, way); });
      passes_.note(step, way, seconds);
      sum += seconds;
    }
    return sum;
  }

 private:
  Replay& replay_;
  Passes& passes_;
  const TaskOptions& options_;
};

}  // namespace

double timed_run(const model::Task& /*task*/, const std::function<void()>& run) {
  const double start = engine::clock_seconds();
  run();
  return engine::clock_seconds() - start;
}

TaskTimes measure_tasks(const schedule::Schedule& schedule, comm::Comm& comm, const TaskTimes& known,
                        const TaskOptions& options) {
  const double begin = options.now();
  const std::int64_t available = engine::available_memory_bytes(comm);
  const std::int64_t most_bytes = options.most_bytes < 0 ? available / 10 * 8 : options.most_bytes;
  if (comm::max(comm, Replay::bytes(schedule) > most_bytes ? 1 : 0) == 1) return {};
  const auto replay =
      comm::agree(comm, [&] { return std::make_unique<Replay>(schedule, options.threads, options.all_ways); });
  Passes passes(replay->steps(), known);
  if (comm::max(comm, passes.has_news() ? 1 : 0) == 0) return {};
  // A replay has no messages, so some of its tensors fade from pass to pass until their numbers are not normal any
  // more. Multiplying such numbers takes a hundred cycles: kernels would seem many times slower than in training.
  const kernels::FlushToZero flush(options.threads);
  Runner runner(*replay, passes, options);
  runner.warm_up();
  double mine = 0, longest = 0;
  for (bool another = true; another;) {
    comm.barrier();
    // A rank with a short schedule repeats it, so that the others do not have the machine to themselves.
    const int repeats = mine > 0 ? std::clamp(static_cast<int>(std::lround(longest / mine)), 1, 50) : 1;
    double spent = 0;
    for (int i = 0; i < repeats; ++i) spent += runner.pass();
    mine = spent / repeats;
    longest = comm::max(comm, mine);
    const bool in_time = comm::max(comm, options.now() - begin) < options.seconds;
    another = comm::max(comm, passes.wants_another(longest) ? 1 : 0) == 1 && in_time;
  }
  return joined(passes.results(), comm);
}

}  // namespace orthant::calibrate
