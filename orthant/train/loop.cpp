#include "orthant/train/loop.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/memory.hpp"
#include "orthant/train/progress.hpp"
#include "orthant/train/run_data.hpp"
#include "orthant/train/run_directory.hpp"
#include "orthant/train/sample_feed.hpp"
#include "orthant/train/scores_text.hpp"
#include "orthant/train/stop_signal.hpp"
#include "orthant/train/validation.hpp"
#include "orthant/train/weights.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace orthant::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::unique_ptr<engine::Engine> make_engine(const RunFile& run, const Job& job, schedule::Schedule schedule,
                                            int threads) {
  auto engine = std::make_unique<engine::Engine>(
      std::move(schedule), job.comm, engine::EngineOptions{.threads = threads, .before_allocation = check_arena});
  if (run.weights.empty()) {
    initialise_weights(*engine, job.graph, run.seed);
  } else {
    load_weights(*engine, job.graph, run.weights);
  }
  return engine;
}

/// What every rank works with, made and checked before the first step.
struct Session {
  Session(const RunFile& run, const RunSurvey& survey, comm::Comm& comm, const TrainOptions& options)
      : graph(model::load_network(run.model, run.network)),
        plan(options.plan(graph)),
        samples(run, graph, survey),
        loader(samples.training(), graph, {.shuffle = run.data.shuffle, .seed = run.seed, .augment = run.data.augment}),
        steps(run.steps > 0 ? run.steps : loader.steps_of(run.epochs)),
        schedule(schedule::lower(graph, plan, comm.rank(), {.optimizer = run.optimizer})) {}

  [[nodiscard]] Start describe(const engine::Engine& engine, comm::Comm& comm, const TrainOptions& options) const {
    return {.network = graph.name,
            .parameters = model::parameter_count(graph),
            .samples = samples.training().samples(),
            .steps = steps,
            .arena_bytes = engine.placement().arena_bytes,
            .ranks = comm.size(),
            .threads = options.threads,
            .remarks = plan.ranks > 1 ? plan::remarks(plan, graph) : std::vector<std::string>{},
            .directory = ""};
  }

  [[nodiscard]] std::int64_t first_epoch_steps() const { return std::min(loader.steps_per_epoch(), steps); }

  model::Graph graph;
  plan::Plan plan;
  RunData samples;
  Loader loader;
  std::int64_t steps;
  schedule::Schedule schedule;
};

/// What rank 0 writes. Made last: a run that cannot start leaves nothing behind.
struct Record {
  Record(const RunFile& run, const std::string& name, const Session& session)
      : directory(run.output, name, run.overwrite),
        log(directory.file("log.txt")),
        metrics(directory.file("metrics.csv"), session.graph.loss) {
    if (session.samples.validation()) validation.emplace(directory.file("validation.csv"));
    data::io::write_text(directory.file("run.yaml"), model::to_text(to_document(run)));
    if (session.plan.ranks > 1) data::io::write_text(directory.file("plan.json"), plan::to_json(session.plan) + "\n");
  }

  RunDirectory directory;
  LineFile log;
  Metrics metrics;
  std::optional<ValidationTable> validation;
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

/// Collective. Samples are kept in half of the memory that the arena leaves, or in as much as the run says.
FeedOptions feed_options(const RunFile& run, std::int64_t steps, std::int64_t arena_bytes, comm::Comm& comm) {
  const std::int64_t left = std::max<std::int64_t>(available_memory_bytes(comm) - arena_bytes, 0);
  const std::int64_t wanted = run.data.store_limit > 0 ? run.data.store_limit : left / 2;
  return {.steps = steps, .keep = keeps_samples(run.data), .limit_bytes = std::min(wanted, left)};
}

/// Every rank knows the loss, so all throw.
void check_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw comm::CollectiveError(
      base::Exit::non_finite,
      fmt::format("the loss is {} at step {}; lower the learning rate, warm up, or check the data", loss, step));
}

/// Collective. True on all ranks if a signal has reached one.
bool stop_asked(comm::Comm& comm, const StopSignal& stop) {
  return comm.size() == 1 ? stop.asked() : comm::max(comm, stop.asked() ? 1 : 0) == 1;
}

/// Collective. Null if the run has no validation.
std::unique_ptr<Validation> make_validation(const Session& session, const Job& job, const TrainOptions& options,
                                            std::int64_t training_bytes) {
  const data::sets::Dataset* samples = session.samples.validation();
  if (samples == nullptr) return nullptr;
  return std::make_unique<Validation>(*samples, job,
                                      EvaluatorOptions{.threads = options.threads,
                                                       .other_bytes = training_bytes,
                                                       .prepare = [&](schedule::Schedule& schedule, comm::Comm& comm) {
                                                         options.prepare(schedule, comm, session.first_epoch_steps());
                                                       }});
}

/// Where a run is when it is validated. Only rank 0 has a record and progress.
struct Moment {
  engine::Engine& engine;
  Validation& validation;
  const Summary& summary;
  Record* record;
  Progress* progress;
};

/// Collective. Scores the weights after a step and keeps them if they are the best so far.
void validate(const Moment& at, const Job& job) {
  const Clock::time_point start = Clock::now();
  const Scores& scores = at.validation.run(at.summary.steps, at.engine);
  const bool best = at.validation.is_best();
  if (best) save_weights(at.engine, job, at.summary.best_weights);
  if (at.record == nullptr) return;
  at.record->validation->write({at.summary.steps, at.summary.epochs, seconds_since(start), scores});
  const std::string text =
      fmt::format("step {}  validation {}{}", at.summary.steps, to_text(scores), best ? "  best so far" : "");
  at.record->log.write(log_line(text));
  at.progress->note(text);
}

}  // namespace

Summary train(const RunFile& run, comm::Comm& comm, const TrainOptions& options) {
  const auto trace_file = comm::agree(comm, [&] { return open_trace(options.trace_path, comm); });
  const RunSurvey survey = survey_run(run, comm);
  const auto session = comm::agree(comm, [&] { return std::make_unique<Session>(run, survey, comm, options); });
  const Job job{session->graph, session->plan, comm};
  options.prepare(session->schedule, comm, session->first_epoch_steps());
  const auto made =
      comm::agree(comm, [&] { return make_engine(run, job, std::move(session->schedule), options.threads); });
  engine::Engine& engine = *made;
  const auto validation = make_validation(*session, job, options, engine.placement().arena_bytes);
  const std::int64_t arena_bytes = engine.placement().arena_bytes + (validation ? validation->arena_bytes() : 0);
  SampleFeed feed(session->loader, engine, comm, feed_options(run, session->steps, arena_bytes, comm));
  const auto record = comm::agree(
      comm, [&] { return comm.rank() == 0 ? std::make_unique<Record>(run, options.name, *session) : nullptr; });
  Start begin = session->describe(engine, comm, options);
  begin.store = feed.store();
  Summary summary{.arena_bytes = begin.arena_bytes, .store_bytes = feed.store().bytes};
  if (validation) {
    begin.validation_samples = validation->samples();
    begin.validation_bytes = validation->arena_bytes();
  }
  if (record) {
    summary.directory = begin.directory = record->directory.path();
    summary.weights = record->directory.file("weights.safetensors");
    summary.best_weights = validation ? record->directory.file("best.safetensors") : "";
    record->log.write(log_line(fmt::format(
        "{}: {} parameters, {} steps of {} samples, {} ranks, arena {} bytes, store {} bytes", begin.network,
        begin.parameters, begin.steps, run.network.mini_batch, begin.ranks, begin.arena_bytes, begin.store.bytes)));
    if (options.started) options.started(begin);
  }

  std::optional<Progress> progress;
  if (record) progress.emplace(session->steps, run.network.mini_batch);
  engine::Trace trace = make_trace(engine, options.trace_path.empty() ? 0 : session->steps);
  LossRecord losses;
  const StopSignal stop;
  const Clock::time_point start = Clock::now();
  for (std::int64_t step = 1; step <= session->steps && !stop_asked(comm, stop); ++step) {
    const Clock::time_point step_start = Clock::now();
    const double rate = rate_at(run.learning_rate, step, session->steps);
    const kernels::Context context{.step = step, .seed = run.seed, .learning_rate = rate};
    feed.load(step);
    has_room(engine, trace) ? engine.run(context, trace) : engine.run(context);
    const double loss = engine.losses().back();
    summary.steps = step;
    summary.epochs = session->loader.epoch_of(step);
    if (record) {
      record->metrics.write({step, summary.epochs, rate, seconds_since(step_start), engine.losses()});
      progress->update(step, loss);
    }
    check_finite(loss, step);
    losses.add(loss);
    if (run.save_every > 0 && step % run.save_every == 0) save_weights(engine, job, summary.weights);
    const bool epoch_ends = session->loader.epoch_of(step + 1) > summary.epochs;
    const bool due = run.validation.every > 0 ? step % run.validation.every == 0 : epoch_ends;
    if (validation && (due || step == session->steps))
      validate({engine, *validation, summary, record.get(), progress ? &*progress : nullptr}, job);
  }
  feed.finish();
  summary.epoch_io = feed.totals();
  if (progress) {
    progress->finish();
    summary.samples_per_second = progress->samples_per_second();
  }
  summary.seconds = seconds_since(start);
  summary.stopped = summary.steps < session->steps;
  losses.summarise(summary);
  if (validation) {
    summary.validation = validation->last();
    summary.best = validation->best();
    summary.best_step = validation->best_step();
  }
  save_weights(engine, job, summary.weights);
  if (!options.trace_path.empty()) write_trace(trace_file.get(), engine, trace, comm);
  if (record) {
    if (run.data.kind != DataOptions::Kind::synthetic) {
      for (const std::string& line : to_lines(summary.epoch_io)) record->log.write(log_line(line));
    }
    record->log.write(log_line(fmt::format("{} after {} steps, loss {} -> {}", summary.stopped ? "stopped" : "done",
                                           summary.steps, summary.first_loss, summary.last_loss)));
  }
  return summary;
}

}  // namespace orthant::train
