#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/choose.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/train/resume.hpp"
#include "orthant/train/run_file.hpp"
#include "orthant/train/sample_feed.hpp"
#include "orthant/train/scores.hpp"
#include "orthant/train/stop_time.hpp"

#include <functional>
#include <optional>
#include <string>

namespace orthant::train {

/// The results of a run.
struct Summary {
  std::int64_t steps = 0, epochs = 0;
  std::int64_t averaged_steps = 0;  ///< the number of steps over which each of the two losses is averaged
  double first_loss = 0, last_loss = 0;
  double seconds = 0;
  double samples_per_second = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t store_bytes = 0;   ///< kept in memory by all ranks
  std::vector<EpochIo> epoch_io;  ///< of all ranks
  std::string directory, weights;
  std::optional<Scores> validation, best;  ///< after the last validation, and with the lowest validation loss
  std::int64_t best_step = 0;
  std::string best_weights;  ///< empty without validation
  /// By a signal or because time is up; the weights are those of the last step.
  enum class Stop { none, by_signal, by_time };
  Stop stopped = Stop::none;
  std::int64_t resumed_step = -1;                              ///< the step after which the run went on; -1: it began
  std::int64_t checkpoints = 0;                                ///< that were written
  std::int64_t checkpoint_step = -1;                           ///< of the newest; -1: there is none
  double checkpoint_seconds = 0, checkpoint_wait_seconds = 0;  ///< to write them; and in which training waited for it
  std::int64_t skipped_steps = 0;                              ///< whose numbers were not finite
};

/// What is known before the first step.
struct RunDescription {
  std::string network;
  std::int64_t parameters = 0, samples = 0, steps = 0;
  std::int64_t arena_bytes = 0;
  StoreSize store;
  std::int64_t validation_samples = 0, validation_bytes = 0;
  int ranks = 1, threads = 1;
  std::vector<std::string> remarks;  ///< on the plan
  std::vector<std::string> network_remarks;
  std::vector<std::string> notes;  ///< on checkpoints
  std::string directory;
};

struct TrainOptions {
  std::string name = "run";  ///< names the run directory if the run file does not
  std::string trace_path;    ///< where a Chrome trace is written; empty: nowhere
  int threads = 1;           ///< of this rank
  std::function<plan::Plan(const model::Graph&)> plan = plan::serial_plan;
  engine::ChooseOptions kernels{};                     ///< steps per epoch are filled in from the run
  std::function<void(const RunDescription&)> started;  ///< on rank 0
  ResumeOptions resume{};
  std::optional<WallTime> stop_at{};  ///< when the run must have ended
};

/// Collective. Trains as the run says; rank 0 writes the run directory.
Summary train(const RunFile& run, comm::Comm& comm, const TrainOptions& options);

}  // namespace orthant::train
