#include "orthant/engine/choose.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/watchdog.hpp"
#include "orthant/engine/measuring.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/microbatch/store.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace orthant::engine {
namespace {

using model::Algorithm;
std::string to_lines(const Choices& choices) {
  std::string text;
  for (const auto& [key, choice] : choices)
    text += fmt::format("{} {} {} {}\n", model::name_of(choice.algorithm), choice.seconds, choice.scratch_bytes, key);
  return text;
}

/// Adds the choices of `text`. A choice that is known already stays, unless it is automatic.
void add_lines(Choices& choices, const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  Choice choice;
  std::string key;
  while (lines >> name >> choice.seconds >> choice.scratch_bytes && std::getline(lines >> std::ws, key)) {
    choice.algorithm = model::algorithm_named(name).value_or(Algorithm::automatic);
    Choice& known = choices[key];
    if (known.algorithm == Algorithm::automatic) known = choice;
  }
}

/// Collective. The choices of all ranks that speak; where they differ, the lowest rank's.
Choices agreed(comm::Comm& comm, const Choices& mine, bool speaks) {
  const std::string lines = speaks ? to_lines(mine) : "";
  Choices all;
  for (const std::vector<char>& part : comm::gather(comm, std::span(lines), 0))
    add_lines(all, std::string(part.begin(), part.end()));
  Choices choices;
  add_lines(choices, comm::on_root(comm, [&] { return to_lines(all); }));
  return choices;
}

/// Collective. Ranks with little to measure wait for the others, and the watchdog must not end them.
ChooseOptions for_job(ChooseOptions options, comm::Comm& comm) {
  const std::int64_t share = available_memory_bytes(comm);
  if (!options.most_bytes) options.most_bytes = share / 2;
  if (comm.size() > 1) {
    const double patience = std::chrono::duration<double>(comm::watchdog_timeout()).count();
    options.limits.most_seconds = std::min(options.limits.most_seconds, patience / 2);
  }
  return options;
}

}  // namespace

FastestAlgorithms find_fastest(const schedule::Schedule& schedule, comm::Comm& comm, const ChooseOptions& asked) {
  const ChooseOptions options = for_job(asked, comm);
  // The fastest of more algorithms may be another one.
  const bool more = options.errors != model::ErrorClass::exact;
  const microbatch::Store store(options.cache_path, kernels::machine_key() + (more ? ", fast" : ""));
  Choices choices;
  add_lines(choices, comm::on_root(comm, [&] {
              if (const std::string why = store.trouble(); !why.empty()) options.ignored(why);
              return to_lines(to_choices(store.load()));
            }));
  Measuring measuring(schedule, options);
  std::vector<OpenTask> missing;
  for (const OpenTask& task : open_tasks(schedule, options.threads)) {
    const auto known = choices.find(task.key);
    known == choices.end() ? missing.push_back(task) : measuring.know(task, known->second);
  }
  const Choices mine = measuring.run(missing);
  Measured result{.seconds = measuring.seconds()};
  // Ranks of the first machine speak, too: one of them may have had time for what another had not.
  Choices measured = agreed(comm, mine, options.speaks || comm.sharing_ranks().front() == 0);
  result.left_tasks = static_cast<int>(
      std::erase_if(measured, [](const auto& entry) { return entry.second.algorithm == Algorithm::automatic; }));
  result.tasks = static_cast<int>(measured.size());
  if (comm.rank() == 0 && !store.add(to_records(measured))) options.forgotten();
  choices.insert(measured.begin(), measured.end());
  options.finished(result);
  return {.choices = std::move(choices), .measured = result};
}

}  // namespace orthant::engine
