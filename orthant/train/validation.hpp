#pragma once

#include "orthant/train/evaluator.hpp"
#include "orthant/train/run_directory.hpp"

#include <optional>

namespace orthant::train {

/// Scores a network on samples that the run does not train on, and remembers the best scores so far.
class Validation {
 public:
  /// Collective. Makes a session of its own with the network, plan and kernels of `training`; `dataset` must outlive
  /// this.
  Validation(const data::sets::Dataset& dataset, const engine::Session& training, const EvaluatorOptions& options);

  /// Collective. The scores with the weights that `training` has now. Throws CollectiveError if the loss is not finite.
  const Scores& run(std::int64_t step, engine::Engine& training);
  /// True if the last run had the lowest loss so far.
  [[nodiscard]] bool is_best() const { return best_step_ == last_step_; }

  [[nodiscard]] std::int64_t samples() const { return dataset_.samples(); }
  [[nodiscard]] std::int64_t arena_bytes() { return evaluator_.engine().placement().arena_bytes; }
  [[nodiscard]] const std::optional<Scores>& last() const { return last_; }
  [[nodiscard]] const std::optional<Scores>& best() const { return best_; }
  [[nodiscard]] std::int64_t best_step() const { return best_step_; }
  /// The scores of a run that goes on.
  void restore(const std::optional<Scores>& last, const std::optional<Scores>& best, std::int64_t best_step) {
    last_ = last;
    best_ = best;
    best_step_ = best_step;
  }

 private:
  const data::sets::Dataset& dataset_;
  Evaluator evaluator_;
  std::optional<Scores> last_, best_;
  std::int64_t last_step_ = 0, best_step_ = -1;
};

/// validation.csv: a line for every validation.
class ValidationTable {
 public:
  /// `has_header`: of a run that goes on.
  explicit ValidationTable(const std::string& path, bool has_header = false)
      : file_(path, has_header ? LineFile::Mode::append : LineFile::Mode::replace), has_header_(has_header) {}
  struct Row {
    std::int64_t step = 0, epoch = 0;
    double seconds = 0;
    const Scores& scores;
  };
  void write(const Row& row);

 private:
  LineFile file_;
  bool has_header_ = false;
};

}  // namespace orthant::train
