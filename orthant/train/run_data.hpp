#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/sets/dataset.hpp"
#include "orthant/train/run_file.hpp"

#include <memory>
#include <string>

namespace orthant::train {

/// What is to be known of a run's files before they are opened; see survey_data().
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
  /// The validation part reads through data of its own, so that bytes read are counted apart.
  std::unique_ptr<data::sets::Dataset> all_, again_, training_, validation_;
};

}  // namespace orthant::train
