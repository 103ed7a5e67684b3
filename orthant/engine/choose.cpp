#include "orthant/engine/choose.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/engine/choice_cache.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/machine.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

namespace orthant::engine {
namespace {

using model::Algorithm;
using model::ConvTask;

/// Kernels change from version to version: choices of another one do not count.
constexpr int kernels_revision = 5;

std::string machine_key() {
  const kernels::Machine machine = kernels::describe_machine();
  return fmt::format("{}; {}; oneDNN {} {}; kernels {}", machine.processor, machine.simd_target, machine.onednn_version,
                     machine.onednn_isa, kernels_revision);
}

std::string text_of(const tensor::Layout& layout) {
  const auto five = [](const tensor::Shape& shape) {
    return fmt::format("{}x{}x{}x{}x{}", shape.n, shape.c, shape.d, shape.h, shape.w);
  };
  return tensor::is_dense(layout) ? five(layout.extents)
                                  : fmt::format("{} steps {}", five(layout.extents), five(layout.strides));
}

std::string text_of(const tensor::Extent3& extent) { return fmt::format("{}x{}x{}", extent.d, extent.h, extent.w); }

/// All that a kernel's speed depends on.
std::string key_of(const ConvTask& task, int threads) {
  constexpr std::array passes{"forward", "backward_data", "backward_weights"};
  const tensor::Window& window = task.window;
  return fmt::format("{} {} src {} dst {} window {} stride {} dilation {} pad {} groups {}{}{} threads {}",
                     passes[static_cast<std::size_t>(task.pass)], model::name_of(task.activation.kind),
                     text_of(task.src), text_of(task.dst), text_of(window.size), text_of(window.stride),
                     text_of(window.dilation), text_of(window.pad_lo), task.groups, task.bias ? " bias" : "",
                     task.accumulate ? " accumulate" : "", threads);
}

ConvTask* open_task(schedule::Step& step) {
  auto* task = std::get_if<model::Task>(&step.work);
  auto* conv = task ? std::get_if<ConvTask>(task) : nullptr;
  return conv && conv->algorithm == Algorithm::automatic ? conv : nullptr;
}

Algorithm fastest(const schedule::Schedule& schedule, const schedule::Step& step, const ConvTask& task,
                  const ChooseOptions& options) {
  const std::vector<kernels::ConvCandidate> candidates = kernels::conv_candidates(task, options.threads);
  std::int64_t scratch = 0;
  for (const auto& candidate : candidates) scratch = std::max(scratch, candidate.primitive->scratch_bytes());
  if (candidates.size() == 1 || step_bytes(schedule, step) + scratch > options.most_bytes)
    return candidates.front().algorithm;
  const StepMemory memory(schedule, step);
  Algorithm best = candidates.front().algorithm;
  double least = 1e30;
  // In turns, so that what disturbs the machine for a while disturbs all of them.
  for (int round = 0; round < 3; ++round) {
    for (const auto& candidate : candidates) {
      const double seconds = best_seconds(*candidate.primitive, memory.arguments(), {.hopeless = 2 * least});
      if (seconds >= least) continue;
      least = seconds;
      best = candidate.algorithm;
    }
  }
  return best;
}

std::string to_lines(const Choices& choices) {
  std::string text;
  for (const auto& [key, algorithm] : choices) text += fmt::format("{}\t{}\n", model::name_of(algorithm), key);
  return text;
}

/// Adds the lines' choices; what is there stays.
void add_lines(Choices& choices, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (const auto algorithm = model::algorithm_named(line.substr(0, tab)))
      choices.emplace(line.substr(tab + 1), *algorithm);
  }
}

/// Collective. The choices of all ranks; where they differ, the lowest rank's.
Choices agreed(comm::Comm& comm, const Choices& mine) {
  const std::string lines = to_lines(mine);
  Choices all;
  for (const std::vector<char>& part : comm::gather(comm, std::span(lines), 0))
    add_lines(all, std::string(part.begin(), part.end()));
  Choices choices;
  add_lines(choices, comm::on_root(comm, [&] { return to_lines(all); }));
  return choices;
}

}  // namespace

void choose_algorithms(schedule::Schedule& schedule, comm::Comm& comm, const ChooseOptions& options) {
  const ChoiceCache cache(options.cache_path, machine_key());
  Choices choices;
  add_lines(choices, comm::on_root(comm, [&] { return to_lines(cache.load()); }));
  std::map<std::string, const schedule::Step*> missing;
  for (schedule::Step& step : schedule.steps) {
    const ConvTask* task = open_task(step);
    if (!task) continue;
    const std::string key = key_of(*task, options.threads);
    if (!choices.contains(key)) missing.emplace(key, &step);
  }
  if (!missing.empty() && options.measuring) options.measuring(static_cast<int>(missing.size()));
  Choices mine;
  for (const auto& [key, step] : missing) {
    const auto& task = std::get<ConvTask>(std::get<model::Task>(step->work));
    mine.emplace(key, fastest(schedule, *step, task, options));
  }
  const Choices measured = agreed(comm, mine);
  if (comm.rank() == 0 && !cache.store(measured) && options.forgotten) options.forgotten();
  choices.insert(measured.begin(), measured.end());
  for (schedule::Step& step : schedule.steps) {
    if (ConvTask* task = open_task(step)) task->algorithm = choices.at(key_of(*task, options.threads));
  }
}

std::string choice_cache_path() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string path = set("ORTHANT_CACHE"); !path.empty()) return path;
  if (const std::string folder = set("XDG_CACHE_HOME"); !folder.empty()) return folder + "/orthant/kernels.json";
  if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/orthant/kernels.json";
  return "";
}

}  // namespace orthant::engine
