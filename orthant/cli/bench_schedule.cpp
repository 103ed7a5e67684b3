#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/plan/request.hpp"
#include "orthant/schedule/classes.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using schedule::Kind;

constexpr std::array all_kinds{Kind::halo,       Kind::gather, Kind::redistribution, Kind::gradient, Kind::weights,
                               Kind::statistics, Kind::loss};

struct BenchScheduleArguments {
  NetworkArguments network;
  ParallelArguments parallel;
  int rank = 0;
  int repeats = 5;
  bool json = false;
};

/// The fewest seconds that a call took, and what it returned last.
template <class Call>
auto timed(int repeats, double& seconds, Call call) {
  using Clock = std::chrono::steady_clock;
  decltype(call()) result;
  for (int i = 0; i < repeats; ++i) {
    result = {};  // to give up the last one is not part of the call
    const Clock::time_point begin = Clock::now();
    result = call();
    const double mine = std::chrono::duration<double>(Clock::now() - begin).count();
    seconds = i == 0 ? mine : std::min(seconds, mine);
  }
  return result;
}

/// What one step of one rank sends, and what it costs to know that.
struct ScheduleCosts {
  schedule::Schedule schedule;
  int classes = 0;
  double lower_seconds = 0, classes_seconds = 0;
  std::int64_t peak_bytes = 0;  ///< of this process
};

Json to_json(const ScheduleCosts& costs, const model::Graph& graph, const plan::Plan& plan, int rank) {
  Json kinds = Json::object();
  for (const Kind kind : all_kinds) {
    const schedule::Volume volume = schedule::sent(costs.schedule, kind);
    if (volume.messages == 0) continue;
    kinds[schedule::name_of(kind)] = {
        {"messages", volume.messages}, {"bytes", volume.bytes}, {"announced_bytes", volume.announced_bytes}};
  }
  return {{"network", graph.name},
          {"ranks", plan.ranks},
          {"rank", rank},
          {"steps", costs.schedule.steps.size()},
          {"messages", schedule::sent(costs.schedule).messages},
          {"bytes", schedule::sent(costs.schedule).bytes},
          {"requests", schedule::request_count(costs.schedule)},
          {"kinds", kinds},
          {"classes", costs.classes},
          {"lower_seconds", costs.lower_seconds},
          {"all_classes_seconds", costs.classes_seconds},
          {"arena_bytes", schedule::place(costs.schedule).arena_bytes},
          {"peak_rss_bytes", costs.peak_bytes}};
}

void print(const ScheduleCosts& costs, const model::Graph& graph, const plan::Plan& plan, int rank) {
  fmt::print("{} on {} ranks, step of rank {}: {} steps, {} requests\n", graph.name, with_commas(plan.ranks), rank,
             with_commas(static_cast<std::int64_t>(costs.schedule.steps.size())),
             with_commas(schedule::request_count(costs.schedule)));
  Table table({{"sent", Table::Align::left}, {"messages"}, {"bytes"}, {"announced"}});
  for (const Kind kind : all_kinds) {
    const schedule::Volume volume = schedule::sent(costs.schedule, kind);
    if (volume.messages > 0)
      table.add({schedule::name_of(kind), with_commas(volume.messages), bytes_text(volume.bytes),
                 bytes_text(volume.announced_bytes)});
  }
  const schedule::Volume all = schedule::sent(costs.schedule);
  table.add_line();
  table.add({"all", with_commas(all.messages), bytes_text(all.bytes), bytes_text(all.announced_bytes)});
  fmt::print("{}", table.text());
  fmt::print("lowering one rank took {}, one rank of each of {} class{} {}; peak memory {}\n",
             seconds_text(costs.lower_seconds), costs.classes, costs.classes == 1 ? "" : "es",
             seconds_text(costs.classes_seconds), bytes_text(costs.peak_bytes));
}

void run_bench_schedule(const BenchScheduleArguments& arguments) {
  const model::Graph graph = load(arguments.network);
  const plan::Plan plan = plan_for(arguments.parallel, graph, std::max(1, ranks_asked(arguments.parallel)));
  if (arguments.rank >= plan.ranks)
    base::fail(base::Exit::usage, "--rank {}: the plan has ranks 0 to {}", arguments.rank, plan.ranks - 1);
  schedule::LowerOptions options;
  if (const int together = plan.exchanges.most_ranks_per_machine; together > 1)
    options.machines = plan::Machines::alike(plan.ranks, together);
  ScheduleCosts costs;
  costs.schedule = timed(arguments.repeats, costs.lower_seconds,
                         [&] { return schedule::lower(graph, plan, arguments.rank, options); });
  costs.peak_bytes = engine::peak_memory_bytes();
  costs.classes = timed(1, costs.classes_seconds, [&] {
    const schedule::Analysis analysis(graph, plan, false);
    const schedule::Classes classes(analysis, options);
    for (const schedule::RankClass& one : classes.all()) schedule::lower(analysis, one.representative, options);
    return static_cast<int>(classes.all().size());
  });
  if (arguments.json) {
    fmt::print("{}\n", to_json(costs, graph, plan, arguments.rank).dump(2));
  } else {
    print(costs, graph, plan, arguments.rank);
  }
}

}  // namespace

void add_bench_schedule(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "schedule", "Messages, bytes and requests of a step on any number of ranks, counted without running it");
  const auto arguments = std::make_shared<BenchScheduleArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_parallel(*command, arguments->parallel);
  command->add_option("--rank", arguments->rank, "The rank whose step is counted")->check(CLI::Range(0, 1 << 20));
  command->add_option("--repeats", arguments->repeats, "Measurements, of which the best counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_bench_schedule(*arguments); });
}

}  // namespace orthant::cli
