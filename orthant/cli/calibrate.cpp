#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/calibrate/links.hpp"
#include "orthant/calibrate/machine.hpp"
#include "orthant/calibrate/plans.hpp"
#include "orthant/calibrate/profile_file.hpp"
#include "orthant/calibrate/shapes.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/plan/strategy.hpp"

#include <unistd.h>

#include <filesystem>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using calibrate::TaskTimes;

struct CalibrateArguments {
  NetworkArguments network;
  ParallelArguments parallel;
  std::string output;
  std::string optimizer = "sgd";
  double seconds = 180;
  bool again = false;
  bool json = false;
};

/// One network under one plan, or one of the general samples.
struct Job {
  std::string name;
  std::function<TaskTimes(const TaskTimes& known, const calibrate::TaskOptions&)> measure;
};

/// SGD has momentum, because networks of this kind are trained with it.
model::Optimizer calibrated_optimizer(const std::string& name) {
  if (name == "adam") return {.kind = model::OptimizerKind::adam};
  return {.kind = model::OptimizerKind::sgd, .momentum = 0.9};
}

std::string path_of(const CalibrateArguments& arguments) {
  const std::string path = arguments.output.empty() ? calibrate::profile_path() : arguments.output;
  if (path.empty())
    base::fail(base::Exit::usage,
               "calibrate: there is no folder for the profile; name a file with -o or ORTHANT_PROFILE");
  return path;
}

/// The plans to measure: the one that is asked for, or those of all strategies that suit the network.
std::vector<std::pair<std::string, plan::Plan>> plans_of(const CalibrateArguments& arguments, const model::Graph& graph,
                                                         int ranks) {
  const ParallelArguments& parallel = arguments.parallel;
  const bool is_named = !parallel.grid.empty() || !parallel.strategy.empty() || !parallel.plan.empty();
  std::vector<std::pair<std::string, plan::Plan>> plans;
  if (ranks == 1 || is_named) {
    plans.emplace_back("the plan", plan_for(parallel, graph, ranks));
    return plans;
  }
  for (const std::string& name : plan::strategy_names()) {
    ParallelArguments one = parallel;
    one.strategy = name;
    try {
      plans.emplace_back(name, plan_for(one, graph, ranks));
    } catch (const base::Error&) {
      // This network cannot be cut so.
    }
  }
  return plans;
}

/// The graph is that of the jobs.
std::vector<Job> jobs_of(const CalibrateArguments& arguments, const model::Graph* graph, comm::Comm& comm) {
  const model::Optimizer optimizer = calibrated_optimizer(arguments.optimizer);
  std::vector<Job> jobs;
  if (!graph) {
    for (const calibrate::Sample& sample : calibrate::general_samples()) {
      jobs.push_back({calibrate::text_of(sample), [&comm, &sample, optimizer](const TaskTimes& known, const auto& how) {
                        const auto schedule =
                            comm::agree(comm, [&] { return calibrate::schedule_of(sample, {.optimizer = optimizer}); });
                        return calibrate::measure_tasks(schedule, comm, known, how);
                      }});
    }
    return jobs;
  }
  for (auto& [name, plan] : plans_of(arguments, *graph, comm.size())) {
    jobs.push_back({graph->name + " " + name,
                    [&comm, graph, optimizer, plan = std::move(plan)](const TaskTimes& known, const auto& how) {
                      return calibrate::measure_plan(*graph, plan, optimizer, comm, known, how);
                    }});
  }
  return jobs;
}

/// Collective. The tasks of all jobs that there is time for; those that are known are left out.
TaskTimes run_jobs(const CalibrateArguments& arguments, const std::vector<Job>& jobs, TaskTimes known,
                   comm::Comm& comm) {
  const double start = engine::clock_seconds();
  TaskTimes found;
  std::unique_ptr<FileProgress> progress;
  if (comm.rank() == 0) progress = std::make_unique<FileProgress>("measuring", "networks");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double spent = comm::max(comm, engine::clock_seconds() - start);
    const double left = arguments.seconds - spent;
    if (left <= 0) break;
    const auto done = static_cast<double>(i);
    const double at_this_pace = i == 0 ? left : spent / done * (static_cast<double>(jobs.size()) - done);
    if (progress)
      progress->update(static_cast<std::int64_t>(i), static_cast<std::int64_t>(jobs.size()),
                       std::min(left, at_this_pace));
    for (auto& [key, task] :
         jobs[i].measure(known, {.threads = threads_per_rank(arguments.parallel), .seconds = left})) {
      known[key] = task;
      found[key] = task;
    }
  }
  return found;
}

/// Collective. Links between rank 0 and others, as far as there are any.
void measure_links(calibrate::Findings& found, comm::Comm& comm) {
  const int here = comm.ranks_per_machine().front();
  if (here > 1) found.inside = calibrate::measure_link(comm, 0, 1);
  if (comm.size() > here) found.between = calibrate::measure_link(comm, 0, here);
  if (comm.size() > 1) found.poll_seconds = calibrate::measure_poll_seconds(comm, 0, comm.size() > here ? here : 1);
}

/// Collective. All but the tasks.
calibrate::Findings measure_machine(const CalibrateArguments& arguments, const std::string& folder, comm::Comm& comm) {
  const int threads = threads_per_rank(arguments.parallel);
  calibrate::Findings found;
  found.process_bytes = calibrate::measure_process_bytes(comm, threads);
  found.setting = calibrate::measure_setting(comm, threads);
  found.memory_bytes = engine::available_memory_bytes();
  found.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  found.shares_memory = comm.ranks_per_machine().front() == static_cast<int>(comm.sharing_ranks().size());
  measure_links(found, comm);
  comm::agree(comm, [&] {
    if (comm.rank() == 0) found.file_bytes_per_second = calibrate::measure_file_speed(folder);
  });
  return found;
}

Json to_json(const oracle::Link& link) {
  return {{"latency_seconds", link.latency_seconds},
          {"bytes_per_second", link.bytes_per_second},
          {"message_seconds", link.message_seconds},
          {"sender_seconds_per_byte", link.sender_seconds_per_byte},
          {"receiver_seconds_per_byte", link.receiver_seconds_per_byte},
          {"eager_bytes", link.eager_bytes}};
}

Json to_json(const calibrate::Findings& found, const oracle::Profile& profile, const std::string& path,
             double seconds) {
  const oracle::Setting& setting = found.setting;
  return {{"file", path},
          {"processor", profile.processor},
          {"threads", setting.threads},
          {"ranks_per_machine", setting.ranks_per_machine},
          {"new_tasks", setting.tasks.size()},
          {"tasks", calibrate::find_setting(profile, setting.threads, setting.ranks_per_machine)->tasks.size()},
          {"flops_per_second", setting.flops_per_second},
          {"memory_bytes_per_second", setting.memory_bytes_per_second},
          {"step_seconds", setting.step_seconds},
          {"poll_seconds", profile.poll_seconds},
          {"process_bytes", profile.process_bytes},
          {"file_bytes_per_second", profile.file_bytes_per_second},
          {"inside", found.inside ? to_json(*found.inside) : Json()},
          {"between", found.between ? to_json(*found.between) : Json()},
          {"seconds", seconds}};
}

void print_link(const char* name, const std::optional<oracle::Link>& link) {
  if (!link) return;
  fmt::print("{:<18}{:.2f} GB/s each way, latency {}, {} per message, eager up to {}\n", name,
             link->bytes_per_second * 1e-9, seconds_text(link->latency_seconds), seconds_text(link->message_seconds),
             bytes_text(link->eager_bytes));
  fmt::print("{:<18}a sender's processor is busy for {:.3f} ns per byte, a receiver's for {:.3f} ns\n", "",
             link->sender_seconds_per_byte * 1e9, link->receiver_seconds_per_byte * 1e9);
}

void print_text(const calibrate::Findings& found, const oracle::Profile& profile, const std::string& path,
                double seconds) {
  const oracle::Setting& setting = found.setting;
  const oracle::Setting& whole = *calibrate::find_setting(profile, setting.threads, setting.ranks_per_machine);
  fmt::print("setting           {} rank{} per machine, {} thread{} each\n", setting.ranks_per_machine,
             setting.ranks_per_machine == 1 ? "" : "s", setting.threads, setting.threads == 1 ? "" : "s");
  fmt::print("tasks             {} measured in {}; the profile has {} of this setting\n", setting.tasks.size(),
             seconds_text(seconds), whole.tasks.size());
  fmt::print("arithmetic        {:.1f} GFLOP/s per rank\n", setting.flops_per_second * 1e-9);
  fmt::print("memory            {:.1f} GB/s per rank\n", setting.memory_bytes_per_second * 1e-9);
  fmt::print("a step adds       {}, a look after messages {}\n", seconds_text(setting.step_seconds),
             seconds_text(profile.poll_seconds));
  print_link("inside a machine", found.inside);
  print_link("between machines", found.between);
  fmt::print("files             {:.2f} GB/s out of the system's cache\n", profile.file_bytes_per_second * 1e-9);
  fmt::print("process           {} besides its arena\n", bytes_text(profile.process_bytes));
  fmt::print("profile           {}\n", path);
}

/// Collective. What rank 0 finds in the file.
oracle::Profile shared_profile(const std::string& path, comm::Comm& comm) {
  oracle::Profile profile;
  const std::string text = comm::on_root(comm, [&] {
    profile = calibrate::open_profile(path, kernels::machine_key());
    return profile.settings.empty() ? "" : oracle::to_json(profile);
  });
  return text.empty() ? profile : oracle::profile_from_json(text, path);
}

void run_calibrate(const CalibrateArguments& arguments, comm::Comm& comm) {
  const std::string path = path_of(arguments);
  const double start = engine::clock_seconds();
  oracle::Profile profile = shared_profile(path, comm);
  calibrate::Findings found = measure_machine(arguments, std::filesystem::temp_directory_path().string(), comm);
  const oracle::Setting* before =
      calibrate::find_setting(profile, found.setting.threads, found.setting.ranks_per_machine);
  std::unique_ptr<model::Graph> graph;
  if (!arguments.network.model.empty())
    graph = comm::agree(comm, [&] { return std::make_unique<model::Graph>(load(arguments.network)); });
  const auto jobs = comm::agree(comm, [&] { return jobs_of(arguments, graph.get(), comm); });
  found.setting.tasks = run_jobs(arguments, jobs, before && !arguments.again ? before->tasks : TaskTimes{}, comm);
  const double seconds = engine::clock_seconds() - start;
  comm::agree(comm, [&] {
    if (comm.rank() != 0) return;
    calibrate::merge(profile, found);
    calibrate::store_profile(profile, path);
    if (arguments.json) {
      fmt::print("{}\n", to_json(found, profile, path, seconds).dump(2));
    } else {
      print_text(found, profile, path, seconds);
    }
  });
}

/// What can be known before ranks are started.
void check_calibrate(const CalibrateArguments& arguments, int ranks) {
  calibrate::open_profile(path_of(arguments), kernels::machine_key());
  if (!arguments.network.model.empty()) plans_of(arguments, load(arguments.network), ranks);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine into a profile, for plans and predictions");
  const auto arguments = std::make_shared<CalibrateArguments>();
  add_model(*command, arguments->network);
  command->get_option("model")->required(false)->description(
      "Measure what this network needs: a name or a file; a general set of shapes if not given");
  add_shape(*command, arguments->network);
  add_parallel(*command, arguments->parallel);
  command->add_option("-o,--output", arguments->output, "The profile, which is added to; the user's if not given");
  command->add_option("--seconds", arguments->seconds, "Begin nothing after so many seconds of measuring tasks")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->add_option("--optimizer", arguments->optimizer, "sgd (with momentum) or adam")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str();
  command->add_flag("--again", arguments->again, "Also measure what the profile has already");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { check_calibrate(*arguments, ranks); },
        [&](comm::Comm& comm) { run_calibrate(*arguments, comm); });
  });
}

}  // namespace orthant::cli
