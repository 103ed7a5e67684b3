#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/allocation_count.hpp"
#include "orthant/cli/auto_plan.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/step_times.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/kernels/machine.hpp"
#include "orthant/kernels/peak.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/open_data.hpp"
#include "orthant/train/weights.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace orthant::cli {
namespace {

using base::Json;

struct BenchStepArguments {
  NetworkArguments network;
  ParallelArguments parallel;
  std::int64_t steps = 10, warmup = 2;
  std::string optimizer = "sgd";
  std::string trace, write_plan;
  bool layers = false;
  bool json = false;
};

/// The figures of all ranks. Times are those of rank 0, which waits for the others in every step.
struct Measurement {
  std::vector<double> seconds;  ///< per step
  std::vector<double> waited;   ///< per step: of the rank that waited longest
  std::int64_t flops = 0;       ///< of a step: convolutions and dense layers of all ranks
  int threads = 0;              ///< of all ranks
  double peak_gflops = 0;       ///< of all ranks at once
  std::int64_t arena_bytes = 0, allocated_bytes = 0, peak_rss_bytes = 0;  ///< of the largest rank
  schedule::Volume sent;                                                  ///< by all ranks in a step
  std::optional<std::int64_t> allocations;
  engine::Trace trace;
};

/// SGD has momentum, because networks of this kind are trained with it.
model::Optimizer optimizer_for(const std::string& name) {
  if (name == "adam") return {.kind = model::OptimizerKind::adam};
  return {.kind = model::OptimizerKind::sgd, .momentum = 0.9};
}

/// Collective.
engine::Session make_session(const BenchStepArguments& arguments, const model::Graph& graph, const plan::Plan& plan,
                             comm::Comm& comm) {
  engine::SessionOptions options{.lowering = {.optimizer = optimizer_for(arguments.optimizer)},
                                 .threads = threads_per_rank(arguments.parallel),
                                 .kernels = kernel_options(arguments.parallel, comm)};
  if (!arguments.json && comm.rank() == 0) {
    options.before_allocation = [](const schedule::Placement& placement) {
      fmt::print("arena             {} bytes ({}), {} of it parameters, their state, and the source\n",
                 placement.arena_bytes, bytes_text(placement.arena_bytes), bytes_text(placement.persistent_bytes));
      std::fflush(stdout);
    };
  }
  return {graph, plan, comm, options};
}

/// Collective.
Measurement measure(const BenchStepArguments& arguments, engine::Engine& engine, comm::Comm& comm) {
  using Clock = std::chrono::steady_clock;
  Measurement result;
  result.trace = train::make_trace(engine, arguments.steps);
  result.seconds.reserve(static_cast<std::size_t>(arguments.steps));
  result.waited.reserve(static_cast<std::size_t>(arguments.steps));
  kernels::Context context{.step = 1, .seed = 1, .learning_rate = 1e-6};
  for (; context.step <= arguments.warmup; ++context.step) engine.run(context);
  comm.barrier();

  const AllocationCount count;
  for (std::int64_t i = 0; i < arguments.steps; ++i, ++context.step) {
    const Clock::time_point start = Clock::now();
    train::has_room(engine, result.trace) ? engine.run(context, result.trace) : engine.run(context);
    result.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    result.waited.push_back(engine.waited_seconds());
  }
  result.allocations = count.calls();
  return result;
}

/// Collective. Adds what only all ranks know.
void complete(Measurement& result, const BenchStepArguments& arguments, const engine::Engine& engine,
              comm::Comm& comm) {
  const schedule::Schedule& schedule = engine.schedule();
  std::int64_t flops = 0;
  for (const schedule::Step& step : schedule.steps) flops += schedule::flops(step);
  result.flops = comm::sum(comm, flops);
  const schedule::Volume mine = schedule::sent(schedule);
  result.sent = {.messages = comm::sum(comm, mine.messages),
                 .bytes = comm::sum(comm, mine.bytes),
                 .announced_bytes = comm::sum(comm, mine.announced_bytes)};
  for (double& waited : result.waited) waited = comm::max(comm, waited);
  result.arena_bytes = comm::max(comm, engine.placement().arena_bytes);
  result.allocated_bytes = comm::max(comm, engine.allocated_bytes());
  result.peak_rss_bytes = comm::max(comm, engine::peak_memory_bytes());
  result.threads = comm::sum(comm, threads_per_rank(arguments.parallel));
  comm.barrier();
  result.peak_gflops = comm::sum(comm, kernels::fma_peak_gflops(threads_per_rank(arguments.parallel)));
}

Json to_json(const BenchStepArguments& arguments, const engine::Session& session, const Measurement& result) {
  const double best = best_of(result.seconds);
  const double gflops = static_cast<double>(result.flops) / best * 1e-9;
  Json json{{"network", session.graph().name},
            {"mini_batch", session.graph().nodes.front().shape.n},
            {"ranks", session.comm().size()},
            {"threads", threads_per_rank(arguments.parallel)},
            {"instruction_set", kernels::describe_machine().simd_target},
            {"steps", arguments.steps},
            {"seconds_best", best},
            {"seconds_median", median_of(result.seconds)},
            {"flops", result.flops},
            {"gflops", gflops},
            {"peak_gflops", result.peak_gflops},
            {"peak_share", gflops / result.peak_gflops},
            {"arena_bytes", result.arena_bytes},
            {"allocated_bytes", result.allocated_bytes},
            {"peak_rss_bytes", result.peak_rss_bytes},
            {"allocations_in_steady_state", result.allocations ? Json(*result.allocations) : Json()},
            {"exposed_communication_seconds", median_of(result.waited)},
            {"bytes_sent", result.sent.bytes},
            {"bytes_announced", result.sent.announced_bytes},
            {"messages_sent", result.sent.messages}};
  if (arguments.layers) json["layers"] = step_json(step_times(session.engine(), result.trace), result.peak_gflops);
  return json;
}

void print_text(const BenchStepArguments& arguments, const engine::Session& session, const Measurement& result) {
  const double best = best_of(result.seconds);
  const double gflops = static_cast<double>(result.flops) / best * 1e-9;
  const auto samples = static_cast<double>(session.graph().nodes.front().shape.n);
  const int ranks = session.comm().size();
  if (arguments.layers)
    fmt::print("\n{}\n", step_table(step_times(session.engine(), result.trace), result.peak_gflops / ranks));
  fmt::print("step, best        {} of {} steps, {} samples/s\n", seconds_text(best), arguments.steps,
             fmt::format("{:.3g}", samples / best));
  fmt::print("step, median      {}\n", seconds_text(median_of(result.seconds)));
  if (ranks > 1) {
    const double waited = median_of(result.waited);
    fmt::print("messages          {} in {} of all ranks; waited for {}, {} of the step\n",
               bytes_text(result.sent.bytes), result.sent.messages, seconds_text(waited),
               percent_text(waited / median_of(result.seconds)));
    if (result.sent.announced_bytes > 0)
      fmt::print("shared memory     {} more stay where they are: ranks of a machine read them there\n",
                 bytes_text(result.sent.announced_bytes));
  }
  fmt::print("arithmetic        {}, {:.1f} GFLOP/s, {} of the {:.1f} GFLOP/s that {} thread{} reach\n",
             flops_text(result.flops), gflops, percent_text(gflops / result.peak_gflops), result.peak_gflops,
             result.threads, result.threads == 1 ? "" : "s");
  fmt::print("instruction set   {}\n", kernels::describe_machine().simd_target);
  fmt::print("peak memory       {}{}\n", bytes_text(result.peak_rss_bytes), ranks > 1 ? " on the largest rank" : "");
  if (result.allocations) fmt::print("allocations       {} after warm-up\n", *result.allocations);
}

/// Collective.
void print_plan(const model::Graph& graph, const plan::Plan& plan, comm::Comm& comm) {
  if (comm.size() == 1) return;
  const std::string binding = comm::binding_text();
  const auto bindings = comm::gather(comm, std::span<const char>(binding), 0);
  for (std::size_t rank = 0; rank < bindings.size(); ++rank)
    fmt::print("rank {:<13}{}\n", rank, std::string(bindings[rank].begin(), bindings[rank].end()));
  if (comm.rank() != 0) return;
  for (const std::string& remark : plan::remarks(plan, graph)) fmt::print("plan              {}\n", remark);
}

void run_bench_step(const BenchStepArguments& arguments, comm::Comm& comm) {
  const auto trace_file = comm::agree(comm, [&] { return train::open_trace(arguments.trace, comm); });
  const auto graph = comm::agree(comm, [&] { return load(arguments.network); });
  const auto plan = common_plan(arguments.parallel, graph, {.optimizer = optimizer_for(arguments.optimizer)}, comm);
  if (!arguments.json) print_plan(graph, plan, comm);
  engine::Session session = make_session(arguments, graph, plan, comm);
  engine::Engine& engine = session.engine();
  comm::agree(comm, [&] {
    if (comm.rank() == 0 && !arguments.write_plan.empty())
      data::io::write_text(arguments.write_plan, plan::to_json(session.plan()) + "\n");
    session.initialise_weights(1);
    train::DataOptions data;
    data.samples = graph.nodes.front().shape.n;
    const auto dataset = train::open_data(data, graph, "");
    train::Loader(train::MiniBatches(*dataset, graph, {})).load(1, engine);
  });
  Measurement result = measure(arguments, engine, comm);
  complete(result, arguments, engine, comm);
  if (comm.rank() == 0) {
    if (arguments.json) {
      fmt::print("{}\n", to_json(arguments, session, result).dump(2));
    } else {
      print_text(arguments, session, result);
    }
  }
  if (!arguments.trace.empty()) train::write_trace(trace_file.get(), engine, result.trace, comm);
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("step", "Seconds, GFLOP/s, memory and allocations of a training step");
  const auto arguments = std::make_shared<BenchStepArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_parallel(*command, arguments->parallel);
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
  command->add_option("--write-plan", arguments->write_plan, "Write the plan to this file, with the kernels that ran");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { check_plan(arguments->parallel, load(arguments->network), ranks); },
        [&](comm::Comm& comm) { run_bench_step(*arguments, comm); });
  });
}

}  // namespace orthant::cli
