#include "orthant/train/training.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/version.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/train/chrome_trace.hpp"
#include "orthant/train/scores_text.hpp"
#include "orthant/train/weights.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace orthant::train {
namespace {

using base::Exit;
using Stop = Summary::Stop;
using Steady = std::chrono::steady_clock;

/// What ranks tell each other after a step.
enum Bit : unsigned {
  signal_came = 1,
  time_is_up = 2,
  is_writing = 4,  ///< a part of a checkpoint
  checkpoint_due = 8,
  non_finite = 16,  ///< an update has written a number that is not finite
};

constexpr std::int64_t most_rollbacks = 10;
/// Before the first checkpoint nobody knows how long one takes: this is what a slow disk needs.
constexpr double guessed_bytes_per_second = 100e6;

double since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

/// The run file without what says where and how often it writes: what makes two runs the same.
std::string settings_text(RunFile run) {
  run.output.clear();
  run.overwrite = false;
  run.save_every = 0;
  run.threads = 0;
  run.checkpoint = {};
  return model::to_text(to_document(run));
}

std::string new_run_id() {
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return fmt::format("{:016x}", base::keyed(now, static_cast<std::uint64_t>(getpid())));
}

/// Collective. Kept samples may take half of the memory that the arena leaves, or as much as the run says.
FeedOptions feed_options(const RunFile& run, std::int64_t steps, std::int64_t other_bytes, comm::Comm& comm) {
  const std::int64_t left = std::max<std::int64_t>(engine::available_memory_bytes(comm) - other_bytes, 0);
  const std::int64_t wanted = run.data.store_limit > 0 ? run.data.store_limit : left / 2;
  return {.steps = steps, .keep = keeps_samples(run.data), .limit_bytes = std::min(wanted, left)};
}

/// Collective. Weights to begin with, or all that a checkpoint has.
void fill(engine::Session& session, const RunFile& run, const std::optional<Resumed>& resumed) {
  comm::agree(session.comm(), [&] {
    if (resumed) {
      checkpoint::load(session, run.optimizer, checkpoint::Directory(resumed->directory), resumed->found.manifest);
    } else {
      run.weights.empty() ? session.initialise_weights(run.seed) : load_weights(session, run.weights);
    }
  });
}

std::string optimizer_name(const model::Optimizer& optimizer) {
  std::string name;
  for (const std::string& part : checkpoint::state_parts(optimizer)) name += (name.empty() ? "" : ", ") + part;
  return name.empty() ? "one that keeps nothing" : "one that keeps " + name;
}

}  // namespace

Training::Training(const Parts& parts) : at_(parts), vote_(parts.comm.make_vote()) {
  state_ = {.run = comm::on_root(at_.comm, new_run_id),
            .network = at_.graph.name,
            .samples = at_.batches.stream().samples(),
            .mini_batch = at_.batches.mini_batch(),
            .seed = at_.run.seed,
            .optimizer = optimizer_name(at_.run.optimizer),
            .settings = settings_text(at_.run),
            .plan = plan::to_json(at_.session.plan()),
            .ranks = at_.comm.size(),
            .threads = at_.options.threads,
            .program = comm::version_text()};
  if (at_.resumed) {
    const checkpoint::State& saved = at_.resumed->found.manifest.state;
    const auto choice = at_.options.resume.kind == ResumeOptions::Kind::exact ? checkpoint::Choice::exact
                                                                              : checkpoint::Choice::newest_good;
    comm::agree(at_.comm, [&] { check_fits(saved, state_, choice); });
    state_.run = saved.run;
    step_ = summary_.resumed_step = summary_.checkpoint_step = saved.step;
    left_out_ = saved.left_out;
    if (at_.validation != nullptr) at_.validation->restore(saved.validation, saved.best, saved.best_step);
  }
  fill(at_.session, at_.run, at_.resumed);
  if (at_.run.checkpoint.on) writer_.emplace(at_.session, at_.run.optimizer, at_.run.checkpoint.keep);
  if (at_.run.numbers.action == NumberOptions::Action::skip) before_.emplace(at_.session.engine());
  if (writer_) longest_checkpoint_ = static_cast<double>(writer_->bytes()) / guessed_bytes_per_second;
}

checkpoint::State Training::state_after(std::int64_t step) const {
  checkpoint::State state = state_;
  state.step = step;
  state.epoch = step == 0 ? 0 : at_.batches.epoch_of(step);
  state.learning_rate = rate_;
  state.left_out = left_out_;
  if (at_.validation != nullptr) {
    state.validation = at_.validation->last();
    state.best = at_.validation->best();
    state.best_step = at_.validation->best_step();
  }
  return state;
}

/// What is to be said if all checkpoints that are kept do not fit, and one more while it is written; throws Error if
/// that is to end the run.
std::string Training::space_warning() const {
  if (!writer_) return "";
  const std::int64_t needed = (at_.run.checkpoint.keep + 1) * writer_->bytes();
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_, error);
  if (error || space.capacity == 0 || static_cast<std::int64_t>(space.available) >= needed) return "";
  const std::string text = fmt::format(
      "checkpoints need {:.3f} GB ({} of {:.3f} GB) but '{}' has {:.3f} GB left; free some, lower "
      "checkpoint.keep, or choose another output",
      static_cast<double>(needed) * 1e-9, at_.run.checkpoint.keep + 1, static_cast<double>(writer_->bytes()) * 1e-9,
      directory_, static_cast<double>(space.available) * 1e-9);
  if (at_.run.checkpoint.aborts_on_error) throw base::Error(Exit::io, text);
  return text;
}

void Training::make_feed(std::int64_t first) {
  std::int64_t taken = at_.session.engine().placement().arena_bytes;
  if (at_.validation != nullptr) taken += at_.validation->arena_bytes();
  FeedOptions options = feed_options(at_.run, at_.steps, taken, at_.comm);
  options.first = first;
  feed_.reset();
  feed_.emplace(at_.batches, at_.session.engine(), at_.comm, options);
}

void Training::say(const std::string& text) {
  if (!record_) return;
  record_->note(text);
  progress_->note(text);
}

/// What comes before the first step: samples, the directory, and what is said about both.
void Training::start(RunDescription begin) {
  make_feed(step_ + 1);
  const std::string resumed = at_.resumed ? at_.resumed->directory : "";
  record_ = comm::agree(at_.comm, [&]() -> std::unique_ptr<Record> {
    if (at_.comm.rank() != 0) return nullptr;
    const checkpoint::Directory checkpoints(resumed);
    if (at_.resumed) {
      for (const checkpoint::Skipped& one : at_.resumed->found.skipped)
        checkpoints.set_aside(std::stoll(one.path.substr(one.path.rfind('-') + 1)));
      checkpoints.clean();
    }
    return std::make_unique<Record>(Record::Contents{.run = at_.run,
                                                     .loss = at_.graph.loss,
                                                     .name = at_.options.name,
                                                     .plan = plan::to_json(at_.session.plan()),
                                                     .validates = at_.validation != nullptr,
                                                     .resumed = resumed,
                                                     .done = step_});
  });
  directory_ = comm::on_root(at_.comm, [&] { return record_->directory().path(); });
  if (writer_) writer_->set_directory(directory_);
  if (at_.resumed) restore_best(at_.resumed->found.manifest);
  const std::string warning = comm::on_root(at_.comm, [&] { return space_warning(); });
  summary_.arena_bytes = begin.arena_bytes;
  summary_.store_bytes = feed_->store().bytes;
  summary_.directory = begin.directory = directory_;
  summary_.weights = directory_ + "/weights.safetensors";
  summary_.best_weights = at_.validation != nullptr ? directory_ + "/best.safetensors" : "";
  if (!record_) return;
  begin.store = feed_->store();
  if (at_.validation != nullptr) {
    begin.validation_samples = at_.validation->samples();
    begin.validation_bytes = at_.validation->arena_bytes();
  }
  record_->note(fmt::format("{}: {} parameters, {} steps of {} samples, {} ranks, arena {} bytes, store {} bytes",
                            begin.network, begin.parameters, begin.steps, at_.run.network.mini_batch, begin.ranks,
                            begin.arena_bytes, begin.store.bytes));
  if (at_.resumed) {
    for (const checkpoint::Skipped& one : at_.resumed->found.skipped)
      begin.notes.push_back(fmt::format("skipped '{}': {}; it is now '{}.damaged'", one.path, one.reason, one.path));
    begin.notes.push_back(
        fmt::format("goes on after step {}, from '{}'", step_, checkpoint::Directory(directory_).of(step_)));
  }
  if (!warning.empty()) begin.notes.push_back("warning: " + warning);
  for (const std::string& note : begin.notes) record_->note(note);
  if (at_.options.started) at_.options.started(begin);
  progress_.emplace(at_.steps, at_.run.network.mini_batch, step_);
}

/// Runs a step, unless it is left out.
void Training::step(std::int64_t step) {
  engine::Engine& engine = at_.session.engine();
  rate_ = rate_at(at_.run.learning_rate, step, at_.steps);
  const kernels::Context context{.step = step, .seed = at_.run.seed, .learning_rate = rate_};
  ran_ = std::find(left_out_.begin(), left_out_.end(), step) == left_out_.end();
  if (!ran_) return;
  if (before_) before_->take(engine);
  has_room(engine, trace_) ? engine.run(context, trace_) : engine.run(context);
}

/// Collective. What ranks have found in the step. The vote is under way while metrics are written and the next
/// mini-batch is loaded.
unsigned Training::vote(std::int64_t step) {
  const double loss = at_.session.engine().losses().back();
  unsigned mine = 0;
  if (signal_.asked()) mine |= signal_came;
  if (writer_ && writer_->is_busy()) mine |= is_writing;
  if (ran_ && (at_.session.engine().wrote_non_finite() || !std::isfinite(loss))) mine |= non_finite;
  if (record_) {
    const Pace pace{.step_seconds = longest_step_, .checkpoint_seconds = writer_ ? longest_checkpoint_ : 0};
    if (at_.options.stop_at && must_stop(*at_.options.stop_at, std::chrono::system_clock::now(), pace))
      mine |= time_is_up;
    if (at_.run.checkpoint.every == 0 && since(last_checkpoint_) >= 60 * at_.run.checkpoint.minutes)
      mine |= checkpoint_due;
  }
  vote_->start(mine);
  const double seconds = since(step_begin_);
  step_begin_ = Clock::now();
  longest_step_ = std::max(longest_step_, seconds);
  if (record_ && ran_) {
    record_->metrics().write({step, at_.batches.epoch_of(step), rate_, seconds, at_.session.engine().losses()});
    progress_->update(step, loss);
  }
  if (step < at_.steps) feed_->load(step + 1);
  return vote_->result();
}

/// Collective. Does what the vote after a step asks for.
void Training::follow(std::int64_t step, unsigned bits) {
  if ((bits & non_finite) != 0) return refuse_numbers(step);
  skips_in_row_ = 0;
  end(step);
  if ((bits & is_writing) == 0 && writer_) report(writer_->advance());
  const bool epoch_ends = at_.batches.epoch_of(step + 1) > summary_.epochs;
  const std::int64_t every = at_.run.validation.every;
  const bool validates = every > 0 ? step % every == 0 : epoch_ends;
  if (at_.validation != nullptr && (validates || step == at_.steps)) validate();
  const std::int64_t compare_every = at_.run.numbers.compare_every;
  if (compare_every > 0 && step % compare_every == 0) check_replicas(at_.session, step);
  if (at_.run.save_every > 0 && step % at_.run.save_every == 0) save_weights(at_.session, summary_.weights);
  if ((bits & (signal_came | time_is_up)) != 0) {
    summary_.stopped = (bits & signal_came) != 0 ? Stop::by_signal : Stop::by_time;
    stops_ = true;
    signal_.answer();
  }
  const bool due = at_.run.checkpoint.every > 0 ? step % at_.run.checkpoint.every == 0 : (bits & checkpoint_due) != 0;
  is_checkpoint_due_ = is_checkpoint_due_ || due;
  if (writer_ && is_checkpoint_due_ && !stops_ && step < at_.steps && !writer_->is_writing()) begin_checkpoint();
}

/// A step counts, whether its update was kept or dropped.
void Training::end(std::int64_t step) {
  step_ = summary_.steps = step;
  summary_.epochs = at_.batches.epoch_of(step);
  const double loss = at_.session.engine().losses().back();
  if (record_ && ran_ && std::isfinite(loss)) record_->losses().add(loss);
}

/// Scores the weights and keeps them if they are the best so far.
void Training::validate() {
  const Clock::time_point start = Clock::now();
  const Scores& scores = at_.validation->run(summary_.steps, at_.session.engine());
  const bool best = at_.validation->is_best();
  if (best) save_weights(at_.session, summary_.best_weights);
  if (!record_) return;
  record_->validation().write({summary_.steps, summary_.epochs, since(start), scores});
  say(fmt::format("step {}  validation {}{}", summary_.steps, to_text(scores), best ? "  best so far" : ""));
}

void Training::begin_checkpoint() {
  is_checkpoint_due_ = false;
  last_checkpoint_ = Clock::now();
  const bool has_best = at_.validation != nullptr && at_.validation->best().has_value();
  writer_->begin(state_after(step_), has_best ? summary_.best_weights : "");
}

/// Says what became of a checkpoint. Throws CollectiveError if its failure ends the run.
void Training::report(const std::optional<checkpoint::Outcome>& outcome) {
  if (!outcome) return;
  if (outcome->error.empty()) {
    if (!outcome->note.empty()) say("warning: " + outcome->note);
    ++summary_.checkpoints;
    summary_.checkpoint_step = outcome->step;
    longest_checkpoint_ =
        summary_.checkpoints == 1 ? outcome->seconds : std::max(longest_checkpoint_, outcome->seconds);
    if (record_) record_->note(fmt::format("checkpoint of step {} in {:.3f} s", outcome->step, outcome->seconds));
    return;
  }
  const std::string text = fmt::format("no checkpoint of step {}: {}", outcome->step, outcome->error);
  if (at_.run.checkpoint.aborts_on_error || outcome->code == Exit::non_finite)
    throw comm::CollectiveError(outcome->code, text);
  say("warning: " + text);
}

/// A step has made numbers that are not finite.
void Training::refuse_numbers(std::int64_t step) {
  const double loss = at_.session.engine().losses().back();
  const std::string where = non_finite_text(at_.session);
  std::string what = std::isfinite(loss) ? fmt::format("numbers are not finite at step {}", step)
                                         : fmt::format("the loss is {} at step {}", loss, step);
  if (!where.empty()) what += ": " + where;
  const auto action = at_.run.numbers.action;
  if (action == NumberOptions::Action::skip && ++skips_in_row_ <= at_.run.numbers.most_skips) {
    before_->put_back(at_.session.engine(), at_.comm);
    left_out_.push_back(step);
    ++summary_.skipped_steps;
    say(fmt::format("{}; its update is dropped", what));
    return end(step);
  }
  if (action == NumberOptions::Action::rollback && writer_) return roll_back(step, what);
  if (action == NumberOptions::Action::skip)
    what += fmt::format("; {} steps in a row were skipped", at_.run.numbers.most_skips);
  throw comm::CollectiveError(Exit::non_finite,
                              fmt::format("{}; lower the learning rate, warm up, or check the data", what));
}

/// Collective. Best weights that were found after a checkpoint, or that are gone, give way to those that it has.
void Training::restore_best(const checkpoint::Manifest& manifest) const {
  const bool has_best = std::any_of(manifest.files.begin(), manifest.files.end(),
                                    [](const checkpoint::File& file) { return file.name == checkpoint::best_name; });
  if (!has_best || at_.validation == nullptr) return;
  comm::on_root(at_.comm, [&] {
    const std::string from = checkpoint::Directory(directory_).of(manifest.state.step) + "/" + checkpoint::best_name;
    const std::string to = directory_ + "/" + checkpoint::best_name;
    std::error_code error;
    std::filesystem::copy_file(from, to + ".part", std::filesystem::copy_options::overwrite_existing, error);
    if (error) base::fail(Exit::io, "cannot copy '{}' to '{}': {}", from, to, error.message());
    data::io::put_in_place(to + ".part", to);
  });
}

/// Goes back to the newest checkpoint. The step is left out when its turn comes again.
void Training::roll_back(std::int64_t step, const std::string& why) {
  report(writer_->finish());
  const auto found = checkpoint::find(checkpoint::Directory(directory_), checkpoint::Choice::newest_good, at_.comm);
  if (!found || ++rollbacks_ > most_rollbacks) {
    throw comm::CollectiveError(Exit::non_finite,
                                fmt::format("{}; {}; lower the learning rate, warm up, or check the data", why,
                                            found ? fmt::format("the run went back {} times already", most_rollbacks)
                                                  : std::string("there is no checkpoint to go back to")));
  }
  at_.comm.barrier();
  comm::agree(at_.comm,
              [&] { load(at_.session, at_.run.optimizer, checkpoint::Directory(directory_), found->manifest); });
  const checkpoint::State& saved = found->manifest.state;
  if (at_.validation != nullptr) at_.validation->restore(saved.validation, saved.best, saved.best_step);
  say(fmt::format("{}; the run goes back to step {} and leaves this one out", why, saved.step));
  restore_best(found->manifest);
  left_out_.push_back(step);
  ++summary_.skipped_steps;
  step_ = summary_.steps = saved.step;
  comm::agree(at_.comm, [&] {
    if (record_) record_->go_back(step_);
  });
  feed_->finish();
  make_feed(step_ + 1);
  feed_->load(step_ + 1);
}

Summary Training::run(RunDescription begin) {
  start(std::move(begin));
  trace_ = make_trace(at_.session.engine(), at_.options.trace_path.empty() ? 0 : at_.steps);
  const Clock::time_point begun = step_begin_ = last_checkpoint_ = Clock::now();
  summary_.steps = step_;
  if (step_ > 0) summary_.epochs = at_.batches.epoch_of(step_);
  if (step_ < at_.steps) feed_->load(step_ + 1);
  while (step_ < at_.steps && !stops_) {
    const std::int64_t next = step_ + 1;
    step(next);
    follow(next, vote(next));
  }
  finish();
  summary_.seconds = since(begun);
  if (record_) {
    record_->note(fmt::format("{} after {} steps, loss {} -> {}", summary_.stopped != Stop::none ? "stopped" : "done",
                              summary_.steps, summary_.first_loss, summary_.last_loss));
  }
  return summary_;
}

/// The last checkpoint, the weights and the totals.
void Training::finish() {
  feed_->finish();
  summary_.epoch_io = feed_->totals();
  if (progress_) {
    progress_->finish();
    summary_.samples_per_second = progress_->samples_per_second();
  }
  if (step_ >= at_.steps) summary_.stopped = Stop::none;
  if (writer_) {
    report(writer_->finish());
    // A run that has checkpoints ends with one, so that whoever starts it again finds that it is done.
    const bool wanted = summary_.stopped != Stop::none || summary_.checkpoint_step >= 0 ||
                        at_.options.resume.kind != ResumeOptions::Kind::none;
    if (wanted && summary_.checkpoint_step != step_) {
      begin_checkpoint();
      report(writer_->finish());
    }
    summary_.checkpoint_seconds = writer_->written_seconds();
    summary_.checkpoint_wait_seconds = writer_->waited_seconds();
  }
  save_weights(at_.session, summary_.weights);
  if (at_.validation != nullptr) {
    summary_.validation = at_.validation->last();
    summary_.best = at_.validation->best();
    summary_.best_step = at_.validation->best_step();
  }
  if (!record_) return;
  const LossRecord::Means means = record_->losses().means();
  summary_.averaged_steps = means.steps;
  summary_.first_loss = means.first;
  summary_.last_loss = means.last;
  if (at_.run.data.kind != DataOptions::Kind::synthetic)
    for (const std::string& line : to_lines(summary_.epoch_io)) record_->note(line);
}

}  // namespace orthant::train
