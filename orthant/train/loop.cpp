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

#include <algorithm>
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
  engine::Engine engine(schedule::lower(graph, plan::serial_plan(graph), 0, options),
                        {.threads = thread_count(run.threads), .before_allocation = check_arena});
  if (run.weights.empty()) {
    initialise_weights(engine, graph, run.seed);
  } else {
    load_weights(engine, graph, run.weights);
  }
  return engine;
}

/// What a run works with, made and checked before the first step. The directory comes last: a run that cannot start
/// leaves nothing behind.
struct Session {
  Session(const RunFile& run, const std::string& name)
      : graph(model::load_network(run.model, run.network)),
        dataset(open_data(run.data, graph)),
        loader(*dataset, graph, run.data.shuffle, run.seed),
        steps(run.steps > 0 ? run.steps : base::checked_mul(run.epochs, loader.steps_per_epoch())),
        engine(make_engine(run, graph)),
        directory(run.output, name, run.overwrite),
        log(directory.file("log.txt")),
        metrics(directory.file("metrics.csv"), graph.loss) {
    data::write_text(directory.file("run.yaml"), model::to_text(to_document(run)));
  }

  [[nodiscard]] Start describe(const RunFile& run) const {
    return {.network = graph.name,
            .parameters = model::parameter_count(graph),
            .samples = dataset->samples(),
            .steps = steps,
            .arena_bytes = engine.placement().arena_bytes,
            .threads = thread_count(run.threads),
            .directory = directory.path()};
  }

  model::Graph graph;
  std::unique_ptr<data::Dataset> dataset;
  Loader loader;
  std::int64_t steps;
  engine::Engine engine;
  RunDirectory directory;
  LineFile log;
  Metrics metrics;
};

/// Means of the first and the last losses, which are noisy one by one.
class LossRecord {
 public:
  void add(double loss) { losses_.push_back(loss); }
  void summarise(Summary& summary) const {
    if (losses_.empty()) return;
    const std::size_t count = std::clamp<std::size_t>(losses_.size() / 4, 1, 10);
    summary.averaged_steps = static_cast<std::int64_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      summary.first_loss += losses_[i] / static_cast<double>(count);
      summary.last_loss += losses_[losses_.size() - 1 - i] / static_cast<double>(count);
    }
  }

 private:
  std::vector<double> losses_;
};

void check_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  base::fail(base::Exit::non_finite, "the loss is {} at step {}; lower the learning rate, warm up, or check the data",
             loss, step);
}

}  // namespace

Summary train(const RunFile& run, const TrainOptions& options) {
  Session session(run, options.name);
  engine::Engine& engine = session.engine;
  const Start begin = session.describe(run);
  session.log.write(log_line(fmt::format("{}: {} parameters, {} steps of {} samples, arena {} bytes", begin.network,
                                         begin.parameters, begin.steps, run.network.mini_batch, begin.arena_bytes)));
  if (options.started) options.started(begin);

  Progress progress(session.steps, run.network.mini_batch);
  engine::Trace trace = make_trace(engine, options.trace_path.empty() ? 0 : session.steps);
  LossRecord losses;
  const StopSignal stop;
  Summary summary{.arena_bytes = begin.arena_bytes,
                  .directory = begin.directory,
                  .weights = session.directory.file("weights.safetensors")};
  const Clock::time_point start = Clock::now();
  for (std::int64_t step = 1; step <= session.steps && !stop.asked(); ++step) {
    const Clock::time_point step_start = Clock::now();
    const double rate = rate_at(run.learning_rate, step, session.steps);
    const kernels::Context context{.step = step, .seed = run.seed, .learning_rate = rate};
    session.loader.load(step, engine);
    has_room(engine, trace) ? engine.run(context, trace) : engine.run(context);
    const double loss = engine.losses().back();
    summary.steps = step;
    summary.epochs = (step - 1) / session.loader.steps_per_epoch() + 1;
    session.metrics.write({step, summary.epochs, rate, seconds_since(step_start), engine.losses()});
    progress.update(step, loss);
    check_finite(loss, step);
    losses.add(loss);
    if (run.save_every > 0 && step % run.save_every == 0) save_weights(engine, session.graph, summary.weights);
  }
  progress.finish();
  summary.seconds = seconds_since(start);
  summary.samples_per_second = progress.samples_per_second();
  summary.stopped = summary.steps < session.steps;
  losses.summarise(summary);
  save_weights(engine, session.graph, summary.weights);
  if (!options.trace_path.empty()) data::write_text(options.trace_path, chrome_trace(engine, trace));
  session.log.write(log_line(fmt::format("{} after {} steps, loss {} -> {}", summary.stopped ? "stopped" : "done",
                                         summary.steps, summary.first_loss, summary.last_loss)));
  return summary;
}

}  // namespace orthant::train
