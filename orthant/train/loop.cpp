#include "orthant/train/loop.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/file.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/memory.hpp"
#include "orthant/train/progress.hpp"
#include "orthant/train/run_directory.hpp"
#include "orthant/train/stop_signal.hpp"
#include "orthant/train/weights.hpp"

#include <chrono>
#include <cmath>
#include <thread>

namespace orthant::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int thread_count(int wanted) {
  return wanted > 0 ? wanted : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

engine::Engine make_engine(const RunFile& run, const model::Graph& graph) {
  const schedule::LowerOptions options{.optimizer = run.optimizer};
  return engine::Engine(schedule::lower(graph, plan::serial_plan(graph), 0, options),
                        {.threads = thread_count(run.threads), .before_allocation = check_arena});
}

/// Means of the first and the last losses, which are noisy one by one.
class LossRecord {
 public:
  void add(double loss) { losses_.push_back(loss); }
  void summarise(Summary& summary) const {
    const std::size_t count = std::max<std::size_t>(1, std::min<std::size_t>(10, losses_.size() / 4));
    summary.averaged_steps = static_cast<std::int64_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      summary.first_loss += losses_[i] / static_cast<double>(count);
      summary.last_loss += losses_[losses_.size() - 1 - i] / static_cast<double>(count);
    }
  }

 private:
  std::vector<double> losses_;
};

Start describe(const RunFile& run, const model::Graph& graph, const engine::Engine& engine, std::int64_t samples,
               std::int64_t steps, const std::string& directory) {
  return {.network = graph.name,
          .parameters = model::parameter_count(graph),
          .samples = samples,
          .steps = steps,
          .arena_bytes = engine.placement().arena_bytes,
          .threads = thread_count(run.threads),
          .directory = directory};
}

void check_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  base::fail(base::Exit::non_finite, "the loss is {} at step {}; lower the learning rate, warm up, or check the data",
             loss, step);
}

}  // namespace

Summary train(const RunFile& run, const TrainOptions& options) {
  const model::Graph graph = model::load_network(run.model, run.network);
  const auto dataset = open_data(run.data, graph);
  Loader loader(*dataset, graph, run.data.shuffle, run.seed);
  engine::Engine engine = make_engine(run, graph);
  if (run.weights.empty()) {
    initialise_weights(engine, graph, run.seed);
  } else {
    load_weights(engine, graph, run.weights);
  }

  const std::int64_t steps = run.steps > 0 ? run.steps : base::checked_mul(run.epochs, loader.steps_per_epoch());
  const RunDirectory directory(run.output, options.name, run.overwrite);
  data::write_text(directory.file("run.yaml"), model::to_text(to_document(run)));
  const Start begin = describe(run, graph, engine, dataset->samples(), steps, directory.path());
  LineFile log(directory.file("log.txt"));
  log.write(log_line(fmt::format("{} with {} parameters, {} steps of {} samples, arena {} bytes", begin.network,
                                 begin.parameters, steps, run.network.mini_batch, begin.arena_bytes)));
  if (options.started) options.started(begin);

  Metrics metrics(directory.file("metrics.csv"), graph.loss);
  Progress progress(steps, run.network.mini_batch);
  engine::Trace trace = make_trace(engine, options.trace_path.empty() ? 0 : steps);
  LossRecord losses;
  StopSignal stop;
  Summary summary{.arena_bytes = engine.placement().arena_bytes,
                  .directory = directory.path(),
                  .weights = directory.file("weights.safetensors")};
  const Clock::time_point start = Clock::now();
  for (std::int64_t step = 1; step <= steps && !stop.asked(); ++step) {
    const Clock::time_point step_start = Clock::now();
    const kernels::Context context{
        .step = step, .seed = run.seed, .learning_rate = rate_at(run.learning_rate, step, steps)};
    loader.load(step, engine);
    has_room(engine, trace) ? engine.run(context, trace) : engine.run(context);
    const double loss = engine.losses().back();
    summary.epochs = (step - 1) / loader.steps_per_epoch() + 1;
    metrics.write({.step = step,
                   .epoch = summary.epochs,
                   .learning_rate = context.learning_rate,
                   .seconds = seconds_since(step_start),
                   .losses = engine.losses()});
    progress.update(step, loss);
    check_finite(loss, step);
    losses.add(loss);
    summary.steps = step;
    if (run.save_every > 0 && step % run.save_every == 0) save_weights(engine, graph, summary.weights);
  }
  progress.finish();
  summary.seconds = seconds_since(start);
  summary.samples_per_second = progress.samples_per_second();
  summary.stopped = summary.steps < steps;
  if (summary.steps > 0) losses.summarise(summary);
  save_weights(engine, graph, summary.weights);
  if (!options.trace_path.empty()) data::write_text(options.trace_path, chrome_trace(engine, trace));
  log.write(log_line(fmt::format("{} after {} steps, loss {} -> {}", summary.stopped ? "stopped" : "done",
                                 summary.steps, summary.first_loss, summary.last_loss)));
  return summary;
}

}  // namespace orthant::train
