#include "orthant/train/loop.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/mini_batches.hpp"
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

/// The network, its plan and its samples, known before memory is taken.
struct Setup {
  Setup(const RunFile& run, const RunSurvey& survey, const TrainOptions& options)
      : graph(model::load_network(run.model, run.network)),
        plan(options.plan(graph)),
        samples(run, graph, survey),
        batches(samples.training(), graph,
                {.shuffle = run.data.shuffle, .seed = run.seed, .augment = run.data.augment}),
        steps(run.steps > 0 ? run.steps : batches.steps_of(run.epochs)) {}

  model::Graph graph;
  plan::Plan plan;
  RunData samples;
  MiniBatches batches;
  std::int64_t steps;
};

/// Collective.
std::unique_ptr<engine::Session> make_session(const RunFile& run, const Setup& setup, comm::Comm& comm,
                                              const TrainOptions& options) {
  engine::SessionOptions session_options;
  session_options.lowering.optimizer = run.optimizer;
  session_options.threads = options.threads;
  session_options.kernels = options.kernels;
  session_options.kernels.limits.steps_per_epoch = std::min(setup.batches.steps_per_epoch(), setup.steps);
  auto session = std::make_unique<engine::Session>(setup.graph, setup.plan, comm, session_options);
  comm::agree(
      comm, [&] { run.weights.empty() ? session->initialise_weights(run.seed) : load_weights(*session, run.weights); });
  return session;
}

RunDescription describe(const Setup& setup, const engine::Session& session, const TrainOptions& options) {
  const plan::Plan& plan = session.plan();
  return {.network = setup.graph.name,
          .parameters = model::parameter_count(setup.graph),
          .samples = setup.samples.training().samples(),
          .steps = setup.steps,
          .arena_bytes = session.engine().placement().arena_bytes,
          .ranks = session.comm().size(),
          .threads = options.threads,
          .remarks = plan.ranks > 1 ? plan::remarks(plan, setup.graph) : std::vector<std::string>{},
          .directory = ""};
}

/// The files that rank 0 writes. They are created last, so that a run that cannot start leaves nothing behind.
struct Record {
  Record(const RunFile& run, const std::string& name, const Setup& setup, const plan::Plan& plan)
      : directory(run.output, name, run.overwrite),
        log(directory.file("log.txt")),
        metrics(directory.file("metrics.csv"), setup.graph.loss) {
    if (setup.samples.validation()) validation.emplace(directory.file("validation.csv"));
    data::io::write_text(directory.file("run.yaml"), model::to_text(to_document(run)));
    data::io::write_text(directory.file("plan.json"), plan::to_json(plan) + "\n");
  }

  RunDirectory directory;
  LineFile log;
  Metrics metrics;
  std::optional<ValidationTable> validation;
};

/// Averages the first and the last losses, because single ones are noisy.
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

/// Collective. Kept samples may take half of the memory that the arena leaves, or as much as the run says.
FeedOptions feed_options(const RunFile& run, std::int64_t steps, std::int64_t arena_bytes, comm::Comm& comm) {
  const std::int64_t left = std::max<std::int64_t>(engine::available_memory_bytes(comm) - arena_bytes, 0);
  const std::int64_t wanted = run.data.store_limit > 0 ? run.data.store_limit : left / 2;
  return {.steps = steps, .keep = keeps_samples(run.data), .limit_bytes = std::min(wanted, left)};
}

/// All ranks have the same loss, so all throw.
void check_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw comm::CollectiveError(
      base::Exit::non_finite,
      fmt::format("the loss is {} at step {}; lower the learning rate, warm up, or check the data", loss, step));
}

/// Lets all ranks stop after the same step. The vote is under way while the step is computed, so that no rank waits for
/// it. A signal that comes too late for the vote of one step is in that of the next.
class StopVote {
 public:
  explicit StopVote(comm::Comm& comm) : is_alone_(comm.size() == 1), vote_(comm.make_vote()) {}

  /// Collective, before a step.
  void start() { vote_->start(signal_.asked()); }
  /// Collective, after it. True if a signal has reached a rank.
  bool result() { return vote_->result() || (is_alone_ && signal_.asked()); }

 private:
  StopSignal signal_;
  bool is_alone_;
  std::unique_ptr<comm::Vote> vote_;
};

/// Collective. Null if the run has no validation.
std::unique_ptr<Validation> make_validation(const Setup& setup, const engine::Session& session,
                                            const TrainOptions& options) {
  const data::sets::Dataset* samples = setup.samples.validation();
  if (samples == nullptr) return nullptr;
  return std::make_unique<Validation>(
      *samples, session,
      EvaluatorOptions{.threads = options.threads, .other_bytes = session.engine().placement().arena_bytes});
}

/// What validation needs of a run. Only rank 0 has a record and progress.
struct Moment {
  engine::Session& session;
  Validation& validation;
  const Summary& summary;
  Record* record;
  Progress* progress;
};

/// Collective. Scores the weights after a step and keeps them if they are the best so far.
void validate(const Moment& at) {
  const Clock::time_point start = Clock::now();
  const Scores& scores = at.validation.run(at.summary.steps, at.session.engine());
  const bool best = at.validation.is_best();
  if (best) save_weights(at.session, at.summary.best_weights);
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
  const auto setup = comm::agree(comm, [&] { return std::make_unique<Setup>(run, survey, options); });
  const auto session = make_session(run, *setup, comm, options);
  engine::Engine& engine = session->engine();
  const auto validation = make_validation(*setup, *session, options);
  const std::int64_t arena_bytes = engine.placement().arena_bytes + (validation ? validation->arena_bytes() : 0);
  SampleFeed feed(setup->batches, engine, comm, feed_options(run, setup->steps, arena_bytes, comm));
  const auto record = comm::agree(comm, [&] {
    return comm.rank() == 0 ? std::make_unique<Record>(run, options.name, *setup, session->plan()) : nullptr;
  });
  RunDescription begin = describe(*setup, *session, options);
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
  if (record) progress.emplace(setup->steps, run.network.mini_batch);
  engine::Trace trace = make_trace(engine, options.trace_path.empty() ? 0 : setup->steps);
  LossRecord losses;
  StopVote stop(comm);
  bool stops = false;
  const Clock::time_point start = Clock::now();
  for (std::int64_t step = 1; step <= setup->steps && !stops; ++step) {
    const Clock::time_point step_start = Clock::now();
    const double rate = rate_at(run.learning_rate, step, setup->steps);
    const kernels::Context context{.step = step, .seed = run.seed, .learning_rate = rate};
    feed.load(step);
    stop.start();
    has_room(engine, trace) ? engine.run(context, trace) : engine.run(context);
    stops = stop.result();
    const double loss = engine.losses().back();
    summary.steps = step;
    summary.epochs = setup->batches.epoch_of(step);
    if (record) {
      record->metrics.write({step, summary.epochs, rate, seconds_since(step_start), engine.losses()});
      progress->update(step, loss);
    }
    check_finite(loss, step);
    losses.add(loss);
    if (run.save_every > 0 && step % run.save_every == 0) save_weights(*session, summary.weights);
    const bool epoch_ends = setup->batches.epoch_of(step + 1) > summary.epochs;
    const bool due = run.validation.every > 0 ? step % run.validation.every == 0 : epoch_ends;
    if (validation && (due || step == setup->steps))
      validate({*session, *validation, summary, record.get(), progress ? &*progress : nullptr});
  }
  feed.finish();
  summary.epoch_io = feed.totals();
  if (progress) {
    progress->finish();
    summary.samples_per_second = progress->samples_per_second();
  }
  summary.seconds = seconds_since(start);
  summary.stopped = summary.steps < setup->steps;
  losses.summarise(summary);
  if (validation) {
    summary.validation = validation->last();
    summary.best = validation->best();
    summary.best_step = validation->best_step();
  }
  save_weights(*session, summary.weights);
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
