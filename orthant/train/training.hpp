#pragma once

#include "orthant/train/checkpoint/writer.hpp"
#include "orthant/train/loop.hpp"
#include "orthant/train/mini_batches.hpp"
#include "orthant/train/numbers.hpp"
#include "orthant/train/progress.hpp"
#include "orthant/train/record.hpp"
#include "orthant/train/stop_signal.hpp"
#include "orthant/train/validation.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace orthant::train {

/// The steps of a run, and what happens between them: metrics, validation, checkpoints, and the decision of all ranks
/// whether to go on. Ranks tell each other in one vote after every step what they found in it.
class Training {
 public:
  /// All of it must outlive the training.
  struct Parts {
    const RunFile& run;
    comm::Comm& comm;
    const TrainOptions& options;
    const model::Graph& graph;
    const MiniBatches& batches;
    std::int64_t steps = 0;
    engine::Session& session;
    Validation* validation = nullptr;  ///< null: none
    const std::optional<Resumed>& resumed;
  };
  /// Collective. Fills the session with weights, or with what a checkpoint has.
  explicit Training(const Parts& parts);

  /// Collective. All steps that are left, and what is to be done after the last one.
  Summary run(RunDescription begin);
  [[nodiscard]] const engine::Trace& trace() const { return trace_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] checkpoint::State state_after(std::int64_t step) const;
  [[nodiscard]] std::string space_warning() const;
  void start(RunDescription begin);
  void make_feed(std::int64_t first);
  void say(const std::string& text);
  void step(std::int64_t step);
  unsigned vote(std::int64_t step);
  void follow(std::int64_t step, unsigned bits);
  void validate();
  void begin_checkpoint();
  void report(const std::optional<checkpoint::Outcome>& outcome);
  void refuse_numbers(std::int64_t step);
  void roll_back(std::int64_t step, const std::string& why);
  void restore_best(const checkpoint::Manifest& manifest) const;
  void end(std::int64_t step);
  void finish();

  Parts at_;
  std::optional<checkpoint::Writer> writer_;
  std::optional<StepCopy> before_;  ///< the step, to take it back
  std::optional<SampleFeed> feed_;
  std::unique_ptr<Record> record_;    ///< on rank 0
  std::optional<Progress> progress_;  ///< on rank 0
  engine::Trace trace_;
  checkpoint::State state_;  ///< with what does not change
  Summary summary_;
  std::string directory_;
  StopSignal signal_;
  std::unique_ptr<comm::Vote> vote_;
  Clock::time_point step_begin_, last_checkpoint_;
  double longest_step_ = 0, longest_checkpoint_ = 0;  ///< seconds
  double rate_ = 0;
  bool is_checkpoint_due_ = false, stops_ = false;
  bool ran_ = false;       ///< the last step, which was not left out
  std::int64_t step_ = 0;  ///< the last one whose update has been kept, or left out for good
  std::int64_t skips_in_row_ = 0, rollbacks_ = 0;
  std::vector<std::int64_t> left_out_;
};

}  // namespace orthant::train
