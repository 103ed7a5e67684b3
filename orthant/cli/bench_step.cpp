#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/allocation_count.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/step_times.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/file.hpp"
#include "orthant/kernels/peak.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/memory.hpp"
#include "orthant/train/weights.hpp"

#include <chrono>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;

struct BenchStepArguments {
  NetworkArguments network;
  int threads = 0;
  std::int64_t steps = 10, warmup = 2;
  std::string optimizer = "sgd";
  std::string trace;
  bool layers = false;
  bool json = false;
};

struct Measurement {
  std::vector<double> seconds;  ///< per step
  std::int64_t flops = 0;       ///< of a step: convolutions and dense layers
  double peak_gflops = 0;
  std::optional<std::int64_t> allocations;
  engine::Trace trace;
};

/// Momentum is what networks of this kind are trained with.
model::Optimizer optimizer_for(const std::string& name) {
  if (name == "adam") return {.kind = model::OptimizerKind::adam};
  return {.kind = model::OptimizerKind::sgd, .momentum = 0.9};
}

engine::Engine make_engine(const BenchStepArguments& arguments, const model::Graph& graph) {
  const auto before = [&](const schedule::Placement& placement) {
    if (!arguments.json) {
      fmt::print("arena             {} bytes ({}), {} of it parameters, their gradients and state, and the source\n",
                 placement.arena_bytes, bytes_text(placement.arena_bytes), bytes_text(placement.persistent_bytes));
      std::fflush(stdout);
    }
    train::check_arena(placement);
  };
  const schedule::LowerOptions options{.optimizer = optimizer_for(arguments.optimizer)};
  return engine::Engine(schedule::lower(graph, plan::serial_plan(graph), 0, options),
                        {.threads = thread_count(arguments.threads), .before_allocation = before});
}

Measurement measure(const BenchStepArguments& arguments, engine::Engine& engine) {
  using Clock = std::chrono::steady_clock;
  Measurement result;
  result.trace = train::make_trace(engine, arguments.steps);
  for (const schedule::Step& step : engine.schedule().steps) result.flops += model::flops(step.task);
  result.seconds.reserve(static_cast<std::size_t>(arguments.steps));
  kernels::Context context{.step = 1, .seed = 1, .learning_rate = 1e-6};
  for (; context.step <= arguments.warmup; ++context.step) engine.run(context);

  const AllocationCount count;
  for (std::int64_t i = 0; i < arguments.steps; ++i, ++context.step) {
    const Clock::time_point start = Clock::now();
    train::has_room(engine, result.trace) ? engine.run(context, result.trace) : engine.run(context);
    result.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  result.allocations = count.calls();
  return result;
}

Json to_json(const BenchStepArguments& arguments, const model::Graph& graph, const engine::Engine& engine,
             const Measurement& result) {
  const double best = best_of(result.seconds);
  const double gflops = static_cast<double>(result.flops) / best * 1e-9;
  Json json{{"network", graph.name},
            {"mini_batch", graph.nodes.front().shape.n},
            {"threads", thread_count(arguments.threads)},
            {"steps", arguments.steps},
            {"seconds_best", best},
            {"seconds_median", median_of(result.seconds)},
            {"flops", result.flops},
            {"gflops", gflops},
            {"peak_gflops", result.peak_gflops},
            {"peak_share", gflops / result.peak_gflops},
            {"arena_bytes", engine.placement().arena_bytes},
            {"allocated_bytes", engine.allocated_bytes()},
            {"peak_rss_bytes", train::peak_memory_bytes()},
            {"allocations_in_steady_state", result.allocations ? Json(*result.allocations) : Json()},
            {"exposed_communication_seconds", 0.0},
            {"bytes_sent", 0}};
  if (arguments.layers) json["layers"] = step_json(step_times(engine, result.trace), result.peak_gflops);
  return json;
}

void print_text(const BenchStepArguments& arguments, const model::Graph& graph, const engine::Engine& engine,
                const Measurement& result) {
  const double best = best_of(result.seconds);
  const double gflops = static_cast<double>(result.flops) / best * 1e-9;
  const auto samples = static_cast<double>(graph.nodes.front().shape.n);
  if (arguments.layers) fmt::print("\n{}\n", step_table(step_times(engine, result.trace), result.peak_gflops));
  fmt::print("step, best        {} of {} steps, {} samples/s\n", seconds_text(best), arguments.steps,
             fmt::format("{:.3g}", samples / best));
  fmt::print("step, median      {}\n", seconds_text(median_of(result.seconds)));
  fmt::print("arithmetic        {}, {:.1f} GFLOP/s, {} of the {:.1f} GFLOP/s that {} thread{} reach\n",
             flops_text(result.flops), gflops, percent_text(gflops / result.peak_gflops), result.peak_gflops,
             thread_count(arguments.threads), thread_count(arguments.threads) == 1 ? "" : "s");
  fmt::print("peak memory       {}\n", bytes_text(train::peak_memory_bytes()));
  if (result.allocations) fmt::print("allocations       {} after warm-up\n", *result.allocations);
}

void run_bench_step(const BenchStepArguments& arguments) {
  const model::Graph graph = load(arguments.network);
  engine::Engine engine = make_engine(arguments, graph);
  train::initialise_weights(engine, graph, 1);
  train::DataOptions data;
  data.samples = graph.nodes.front().shape.n;
  const auto dataset = train::open_data(data, graph);
  train::Loader(*dataset, graph, false, 1).load(1, engine);
  Measurement result = measure(arguments, engine);
  result.peak_gflops = kernels::fma_peak_gflops(thread_count(arguments.threads));
  if (arguments.json) {
    fmt::print("{}\n", to_json(arguments, graph, engine, result).dump(2));
  } else {
    print_text(arguments, graph, engine, result);
  }
  if (!arguments.trace.empty()) data::write_text(arguments.trace, train::chrome_trace(engine, result.trace));
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("step", "Seconds, GFLOP/s, memory and allocations of a training step");
  const auto arguments = std::make_shared<BenchStepArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_threads(*command, arguments->threads);
  command->add_option("--steps", arguments->steps, "Measured steps")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--warmup", arguments->warmup, "Steps before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--optimizer", arguments->optimizer, "sgd (with momentum) or adam")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str();
  command->add_flag("--layers", arguments->layers, "Time, implementation and speed of every step of the schedule");
  command->add_option("--trace", arguments->trace, "Write a Chrome trace to this file");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_bench_step(*arguments); });
}

}  // namespace orthant::cli
