#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/alone.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/conv_error.hpp"
#include "orthant/kernels/peak.hpp"
#include "orthant/kernels/task_key.hpp"
#include "orthant/schedule/schedule.hpp"

#include <memory>
#include <optional>

namespace orthant::cli {
namespace {

using base::Json;

struct BenchKernelsArguments {
  NetworkArguments network;
  int threads = 0;
  std::string layer, errors = "exact";
  double seconds = 0.3;
  bool json = false;
};

/// One implementation of one step, measured.
struct KernelTime {
  std::string step, algorithm, implementation;
  bool chosen = false;
  double seconds = 0;
  std::optional<double> error;  ///< of convolutions
  std::int64_t flops = 0, scratch_bytes = 0;
};

std::vector<kernels::ConvCandidate> candidates(const model::Task& task, const engine::ChooseOptions& options) {
  const int threads = options.threads;
  if (const auto* conv = std::get_if<model::ConvTask>(&task))
    return kernels::conv_candidates(*conv, threads, options.errors);
  std::vector<kernels::ConvCandidate> only;
  only.push_back({model::Algorithm::automatic, kernels::make_primitive(task, threads)});
  return only;
}

bool has_arithmetic(const schedule::Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  return task && (std::holds_alternative<model::ConvTask>(*task) || std::holds_alternative<model::DenseTask>(*task));
}

/// Leaves only the convolutions and dense layers that are asked for.
void keep_steps(schedule::Schedule& schedule, const model::Graph& graph, const std::string& layer) {
  std::vector<std::string> layers;
  const auto is_asked = [&](const schedule::Step& step) {
    if (!has_arithmetic(step)) return false;
    const std::string& name = graph.nodes[static_cast<std::size_t>(step.node)].name;
    layers.push_back(name);
    return layer.empty() || layer == name || layer == step.name;
  };
  std::erase_if(schedule.steps, [&](const schedule::Step& step) { return !is_asked(step); });
  if (schedule.steps.empty())
    base::fail(base::Exit::usage, "{} has no convolution or dense layer '{}'{}", graph.name, layer,
               base::suggestion(layer, layers));
}

/// The fastest algorithm, if the step is a convolution for which it is known.
void set_algorithm(schedule::Step& step, const engine::Choices& fastest, int threads) {
  auto* conv = std::get_if<model::ConvTask>(&std::get<model::Task>(step.work));
  if (!conv) return;
  const auto found = fastest.find(kernels::task_key(*conv, threads));
  if (found != fastest.end()) conv->algorithm = found->second.algorithm;
}

std::vector<KernelTime> measure(double seconds_each, const engine::ChooseOptions& options,
                                const schedule::Schedule& schedule, const schedule::Step& step) {
  engine::check_memory(engine::step_bytes(schedule, step));
  const engine::StepMemory memory(schedule, step);
  const auto& task = std::get<model::Task>(step.work);
  const auto* conv = std::get_if<model::ConvTask>(&task);
  std::vector<KernelTime> times;
  for (const kernels::ConvCandidate& candidate : candidates(task, options)) {
    const double seconds =
        engine::best_seconds(*candidate.primitive, memory.arguments(), {.seconds = seconds_each, .runs = 1'000'000});
    times.push_back({.step = step.name,
                     .algorithm = conv ? model::name_of(candidate.algorithm) : "dense",
                     .implementation = candidate.primitive->name(),
                     .chosen = times.empty(),
                     .seconds = seconds,
                     .error = conv ? std::optional(kernels::sampled_error(*conv, memory.arguments())) : std::nullopt,
                     .flops = schedule::flops(step),
                     .scratch_bytes = candidate.primitive->scratch_bytes()});
  }
  return times;
}

double gigaflops(const KernelTime& time) { return static_cast<double>(time.flops) / time.seconds * 1e-9; }

void print_table(const std::vector<std::vector<KernelTime>>& all, double peak) {
  Table table({{"step", Table::Align::left},
               {"", Table::Align::left},
               {"implementation", Table::Align::left},
               {"ms"},
               {"GFLOP/s"},
               {"of peak"},
               {"scratch"},
               {"error"}});
  for (const std::vector<KernelTime>& times : all) {
    for (const KernelTime& time : times) {
      table.add({time.chosen ? time.step : "", time.chosen ? "*" : "",
                 fmt::format("{} {}", time.algorithm, time.implementation), fmt::format("{:.3f}", time.seconds * 1e3),
                 fmt::format("{:.1f}", gigaflops(time)), percent_text(gigaflops(time) / peak),
                 time.scratch_bytes > 0 ? bytes_text(time.scratch_bytes) : "",
                 time.error ? fmt::format("{:.1e}", *time.error) : ""});
    }
  }
  fmt::print("{}\n* is what runs; the peak of multiply-adds is {:.1f} GFLOP/s\n", table.text(), peak);
}

void print_json(const std::vector<std::vector<KernelTime>>& all, double peak) {
  Json kernels = Json::array();
  for (const std::vector<KernelTime>& times : all) {
    for (const KernelTime& time : times) {
      kernels.push_back({{"step", time.step},
                         {"algorithm", time.algorithm},
                         {"implementation", time.implementation},
                         {"chosen", time.chosen},
                         {"seconds", time.seconds},
                         {"flops", time.flops},
                         {"gflops", gigaflops(time)},
                         {"peak_share", gigaflops(time) / peak},
                         {"scratch_bytes", time.scratch_bytes},
                         {"relative_error", time.error ? Json(*time.error) : Json()}});
    }
  }
  fmt::print("{}\n", Json{{"peak_gflops", peak}, {"kernels", kernels}}.dump(2));
}

void run_bench_kernels(const BenchKernelsArguments& arguments) {
  const model::Graph graph = load(arguments.network);
  schedule::Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  keep_steps(schedule, graph, arguments.layer);
  comm::Alone alone;
  engine::ChooseOptions options = kernel_options({.threads = arguments.threads, .errors = arguments.errors}, alone);
  options.threads = thread_count(arguments.threads);
  const auto fastest = engine::find_fastest(schedule, alone, options);
  for (schedule::Step& step : schedule.steps) set_algorithm(step, fastest.choices, options.threads);
  std::vector<std::vector<KernelTime>> all;
  for (const schedule::Step& step : schedule.steps) all.push_back(measure(arguments.seconds, options, schedule, step));
  const double peak = kernels::fma_peak_gflops(thread_count(arguments.threads));
  arguments.json ? print_json(all, peak) : print_table(all, peak);
}

}  // namespace

void add_bench_kernels(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("kernels", "Every implementation of every convolution and dense layer, timed");
  const auto arguments = std::make_shared<BenchKernelsArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_threads(*command, arguments->threads);
  add_errors(*command, arguments->errors);
  command->add_option("--layer", arguments->layer, "Only this layer, or only this step, e.g. conv1.backward_weights");
  command->add_option("--seconds", arguments->seconds, "Time for each implementation")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_bench_kernels(*arguments); });
}

}  // namespace orthant::cli
