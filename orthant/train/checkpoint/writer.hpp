#pragma once

#include "orthant/base/error.hpp"
#include "orthant/train/checkpoint/directory.hpp"
#include "orthant/train/checkpoint/own_state.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>

namespace orthant::train::checkpoint {

/// What became of a checkpoint, the same on all ranks.
struct Outcome {
  std::int64_t step = 0;
  std::string error;  ///< empty: it is complete
  std::string note;   ///< on rank 0: what went wrong afterwards
  base::Exit code = base::Exit::done;
  double seconds = 0;  ///< from the copy to the end
};

/// The name of the best weights in a checkpoint.
inline constexpr const char* best_name = "best.safetensors";

/// Writes checkpoints of a run while it goes on: each rank its own pieces from a copy, in a thread; when all have,
/// rank 0 writes the manifest, in a thread, too. All ranks make the same calls at the same step, and learn from a vote
/// of theirs (`busy`) when all threads have ended.
class Writer {
 public:
  /// Allocates the copy. The session must outlive it.
  Writer(const engine::Session& session, const model::Optimizer& optimizer, std::int64_t keep);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  /// Waits for the thread.
  ~Writer();

  /// Where to write; only rank 0 needs to know it before set_directory() tells the others.
  void set_directory(const std::string& run_directory);
  /// Bytes of a whole checkpoint, approximately.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// Whether a checkpoint is being written; the same on all ranks.
  [[nodiscard]] bool is_writing() const { return stage_ != Stage::idle; }
  /// Whether this rank's thread works.
  [[nodiscard]] bool is_busy() const;
  /// Collective. Starts a checkpoint of the weights as they are. `best` is a file whose present contents belong to it,
  /// or empty.
  void begin(const State& state, const std::string& best);
  /// Collective. To be called when no rank is busy: goes on to the next stage. Returns what became of the checkpoint
  /// when it has ended.
  std::optional<Outcome> advance();
  /// Collective. Waits until the checkpoint that is being written has ended.
  std::optional<Outcome> finish();
  /// Seconds in which training waited for checkpoints.
  [[nodiscard]] double waited_seconds() const { return waited_seconds_; }
  [[nodiscard]] double written_seconds() const { return written_seconds_; }

 private:
  enum class Stage { idle, writing, committing };
  /// What a thread leaves behind.
  struct Result {
    base::Exit code = base::Exit::done;
    std::string error, text;
  };
  void start(const std::function<std::string()>& work);
  void collect();
  Outcome end();
  void check_space() const;

  const engine::Session& session_;
  OwnState own_;
  std::int64_t keep_, bytes_ = 0;
  Directory directory_;
  Stage stage_ = Stage::idle;
  State state_;
  std::string best_;  ///< name of the file in the checkpoint; only on rank 0
  std::future<Result> work_;
  std::chrono::steady_clock::time_point begin_;
  double waited_seconds_ = 0, written_seconds_ = 0;
};

}  // namespace orthant::train::checkpoint
