#include "orthant/train/run_data.hpp"

#include "orthant/comm/agree.hpp"
#include "orthant/data/sets/subset.hpp"
#include "orthant/train/open_data.hpp"
#include "orthant/train/split.hpp"

namespace orthant::train {
namespace {

std::string survey_validation(const RunFile& run) {
  return run.validation.has_files() ? survey_data(validation_data(run.validation, run.data)) : "";
}

}  // namespace

RunSurvey survey_run(const RunFile& run) { return {survey_data(run.data), survey_validation(run)}; }

RunSurvey survey_run(const RunFile& run, comm::Comm& comm) {
  RunSurvey survey;
  survey.data = comm::on_root(comm, [&] { return survey_data(run.data); });
  survey.validation = comm::on_root(comm, [&] { return survey_validation(run); });
  return survey;
}

RunData::RunData(const RunFile& run, const model::Graph& graph, const RunSurvey& survey)
    : all_(open_data(run.data, graph, survey.data)) {
  if (run.validation.has_files()) {
    validation_ = open_data(validation_data(run.validation, run.data), graph, survey.validation);
  } else if (run.validation.any()) {
    Split split = split_samples(*all_, run.validation.fraction, run.seed);
    training_ = std::make_unique<data::sets::SubsetDataset>(*all_, std::move(split.training));
    again_ = open_data(run.data, graph, survey.data);
    validation_ = std::make_unique<data::sets::SubsetDataset>(*again_, std::move(split.validation));
  }
}

}  // namespace orthant::train
