#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/sets/dataset.hpp"
#include "orthant/train/run_file.hpp"

#include <memory>
#include <string>

namespace orthant::train {

/// Descriptions of a run's files, as survey_data() returns them.
struct RunSurvey {
  std::string data, validation;
};
RunSurvey survey_run(const RunFile& run);
/// Collective. Rank 0 looks at the files for all.
RunSurvey survey_run(const RunFile& run, comm::Comm& comm);

/// The samples of a run.
class RunData {
 public:
  /// Throws Error where files do not fit the network or cannot be split.
  RunData(const RunFile& run, const model::Graph& graph, const RunSurvey& survey);

  /// All that `data` names.
  [[nodiscard]] const data::sets::Dataset& all() const { return *all_; }
  /// What is left of it to train on.
  [[nodiscard]] const data::sets::Dataset& training() const { return training_ ? *training_ : *all_; }
  /// Null if the run has no validation.
  [[nodiscard]] const data::sets::Dataset* validation() const { return validation_.get(); }

 private:
  /// Validation reads through `again_`, a data set of its own, so that its bytes are not counted as those of training.
  std::unique_ptr<data::sets::Dataset> all_, again_, training_, validation_;
};

}  // namespace orthant::train
