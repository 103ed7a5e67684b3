#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/engine/arena.hpp"
#include "orthant/kernels/conv.hpp"
#include "orthant/kernels/peak.hpp"
#include "orthant/schedule/schedule.hpp"
#include "orthant/train/memory.hpp"

#include <chrono>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using Clock = std::chrono::steady_clock;

struct BenchKernelsArguments {
  NetworkArguments network;
  int threads = 0;
  std::string layer;
  double seconds = 0.3;
  bool json = false;
};

/// One implementation of one step, measured.
struct KernelTime {
  std::string step, algorithm, implementation;
  bool chosen = false;
  double seconds = 0;
  std::int64_t flops = 0, scratch_bytes = 0;
};

/// Memory for the arguments of a step, filled with small numbers.
class ArgumentMemory {
 public:
  ArgumentMemory(const schedule::Schedule& schedule, const schedule::Step& step) : arena_(sized(schedule, step)) {
    std::byte* at = arena_.data();
    for (const int argument : step.arguments) {
      pointers_.push_back(argument < 0 ? nullptr : at);
      if (argument >= 0) at += padded(schedule, argument);
    }
    auto* numbers = reinterpret_cast<float*>(arena_.data());
    for (std::int64_t i = 0; i < arena_.bytes() / 4; ++i) numbers[i] = static_cast<float>(i % 13 - 6) / 64;
  }
  [[nodiscard]] std::span<void* const> pointers() const { return pointers_; }

 private:
  static std::int64_t padded(const schedule::Schedule& schedule, int argument) {
    return (schedule.buffers[static_cast<std::size_t>(argument)].bytes + 4095) / 4096 * 4096;
  }
  static std::int64_t sized(const schedule::Schedule& schedule, const schedule::Step& step) {
    std::int64_t bytes = 4096;
    for (const int argument : step.arguments) bytes += argument < 0 ? 0 : padded(schedule, argument);
    train::check_memory(bytes);
    return bytes;
  }

  engine::Arena arena_;
  std::vector<void*> pointers_;
};

/// Best of as many runs as fit into the time, at least two after one that warms up.
double time_primitive(kernels::Primitive& primitive, const ArgumentMemory& memory, double seconds) {
  const engine::Arena scratch(std::max<std::int64_t>(primitive.scratch_bytes(), 64));
  const kernels::Context context;
  primitive.execute(context, memory.pointers(), scratch.data());
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (times.size() < 2 || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    const Clock::time_point begin = Clock::now();
    primitive.execute(context, memory.pointers(), scratch.data());
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best_of(times);
}

std::vector<kernels::ConvCandidate> candidates(const model::Task& task, int threads) {
  if (const auto* conv = std::get_if<model::ConvTask>(&task)) return kernels::conv_candidates(*conv, threads);
  std::vector<kernels::ConvCandidate> only;
  only.push_back({"dense", kernels::make_primitive(task, threads)});
  return only;
}

bool has_arithmetic(const schedule::Step& step) {
  const auto* task = std::get_if<model::Task>(&step.work);
  return task && (std::holds_alternative<model::ConvTask>(*task) || std::holds_alternative<model::DenseTask>(*task));
}

std::vector<const schedule::Step*> chosen_steps(const schedule::Schedule& schedule, const model::Graph& graph,
                                                const std::string& layer) {
  std::vector<const schedule::Step*> steps;
  std::vector<std::string> layers;
  for (const schedule::Step& step : schedule.steps) {
    if (!has_arithmetic(step)) continue;
    const std::string& name = graph.nodes[static_cast<std::size_t>(step.node)].name;
    layers.push_back(name);
    if (layer.empty() || layer == name || layer == step.name) steps.push_back(&step);
  }
  if (steps.empty())
    base::fail(base::Exit::usage, "{} has no convolution or dense layer '{}'{}", graph.name, layer,
               base::suggestion(layer, layers));
  return steps;
}

std::vector<KernelTime> measure(const BenchKernelsArguments& arguments, const schedule::Schedule& schedule,
                                const schedule::Step& step) {
  const int threads = thread_count(arguments.threads);
  const ArgumentMemory memory(schedule, step);
  std::vector<KernelTime> times;
  for (const kernels::ConvCandidate& candidate : candidates(std::get<model::Task>(step.work), threads)) {
    times.push_back({.step = step.name,
                     .algorithm = candidate.algorithm,
                     .implementation = candidate.primitive->name(),
                     .chosen = times.empty(),
                     .seconds = time_primitive(*candidate.primitive, memory, arguments.seconds),
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
               {"scratch"}});
  for (const std::vector<KernelTime>& times : all) {
    for (const KernelTime& time : times) {
      table.add({time.chosen ? time.step : "", time.chosen ? "*" : "",
                 fmt::format("{} {}", time.algorithm, time.implementation), fmt::format("{:.3f}", time.seconds * 1e3),
                 fmt::format("{:.1f}", gigaflops(time)), percent_text(gigaflops(time) / peak),
                 time.scratch_bytes > 0 ? bytes_text(time.scratch_bytes) : ""});
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
                         {"scratch_bytes", time.scratch_bytes}});
    }
  }
  fmt::print("{}\n", Json{{"peak_gflops", peak}, {"kernels", kernels}}.dump(2));
}

void run_bench_kernels(const BenchKernelsArguments& arguments) {
  const model::Graph graph = load(arguments.network);
  const schedule::Schedule schedule = schedule::lower(graph, plan::serial_plan(graph), 0, {});
  std::vector<std::vector<KernelTime>> all;
  for (const schedule::Step* step : chosen_steps(schedule, graph, arguments.layer))
    all.push_back(measure(arguments, schedule, *step));
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
  command->add_option("--layer", arguments->layer, "Only this layer, or only this step, e.g. conv1.backward_weights");
  command->add_option("--seconds", arguments->seconds, "Time for each implementation")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_bench_kernels(*arguments); });
}

}  // namespace orthant::cli
