#pragma once

#include "orthant/train/checkpoint/manifest.hpp"
#include "orthant/train/run_directory.hpp"
#include "orthant/train/run_file.hpp"
#include "orthant/train/validation.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::train {

/// Averages the first and the last losses of a run, because single ones are noisy.
class LossRecord {
 public:
  struct Means {
    std::int64_t steps = 0;  ///< of each
    double first = 0, last = 0;
  };
  void add(double loss) { losses_.push_back(loss); }
  /// Forgets what came after so many steps.
  void cut(std::int64_t steps);
  [[nodiscard]] Means means() const;

 private:
  std::vector<double> losses_;
};

/// The files that rank 0 writes. They are created last, so that a run that cannot start leaves nothing behind.
class Record {
 public:
  /// `plan` is JSON. A run that goes on after `done` steps has a directory already, whose tables are cut back to them.
  struct Contents {
    const RunFile& run;
    const model::Loss& loss;
    std::string name, plan;
    bool validates = false;
    std::string resumed;  ///< the directory of a run that goes on; empty: a new run
    std::int64_t done = 0;
  };
  explicit Record(const Contents& contents);

  /// The run goes back to a step.
  void go_back(std::int64_t step);
  void note(const std::string& text) { log_.write(log_line(text)); }

  [[nodiscard]] const RunDirectory& directory() const { return directory_; }
  [[nodiscard]] Metrics& metrics() { return *metrics_; }
  [[nodiscard]] ValidationTable& validation() { return *validation_; }
  [[nodiscard]] LossRecord& losses() { return losses_; }

 private:
  void open_tables(bool goes_on, std::int64_t done);

  RunDirectory directory_;
  model::Loss loss_;
  bool validates_;
  LineFile log_;
  std::optional<Metrics> metrics_;
  std::optional<ValidationTable> validation_;
  LossRecord losses_;
};

}  // namespace orthant::train
