#include "orthant/train/run_data.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/printable.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/sets/subset.hpp"
#include "orthant/data/tools/set_check.hpp"
#include "orthant/train/open_data.hpp"
#include "orthant/train/split.hpp"

namespace orthant::train {
namespace {

std::string survey_validation(const RunFile& run) {
  return run.validation.has_files() ? survey_data(validation_data(run.validation, run.data)) : "";
}

void warn_of_gaps(const std::string& survey) {
  if (survey.empty()) return;
  for (const data::formats::Hdf5Outline& outline : data::formats::outlines_from_text(survey)) {
    for (const data::formats::Hdf5Array& array : outline.arrays) {
      if (const std::string gaps = data::formats::gaps_of(outline, array); !gaps.empty())
        fmt::print(stderr, "warning: {}\n", base::one_line(gaps));
    }
  }
}

/// Collective. Compares files with the checksums beside them, each rank some, and tells what was never written.
void check_files(const RunFile& run, const RunSurvey& survey, comm::Comm& comm) {
  if (comm.rank() == 0) {
    warn_of_gaps(survey.data);
    warn_of_gaps(survey.validation);
  }
  const std::vector<std::string> paths = comm::agree(comm, [&] {
    std::vector<std::string> found = files_of(run.data);
    if (run.validation.has_files())
      for (std::string& path : files_of(validation_data(run.validation, run.data))) found.push_back(std::move(path));
    return found;
  });
  // Together after every file, so that no rank waits long for another.
  data::tools::ChecksumLists lists;
  const auto ranks = static_cast<std::size_t>(comm.size());
  for (std::size_t first = 0; first < paths.size(); first += ranks) {
    comm::agree(comm, [&] {
      const std::size_t mine = first + static_cast<std::size_t>(comm.rank());
      if (mine >= paths.size()) return;
      // Values beside volumes may be in no list: `data verify` takes files of one kind.
      const auto [compared, problem] = lists.compare(paths[mine]);
      if (compared && !problem.empty()) base::fail(base::Exit::bad_data, "{}", problem);
    });
  }
}

}  // namespace

RunSurvey survey_run(const RunFile& run) { return {survey_data(run.data), survey_validation(run)}; }

RunSurvey survey_run(const RunFile& run, comm::Comm& comm) {
  RunSurvey survey;
  survey.data = comm::on_root(comm, [&] { return survey_data(run.data); });
  survey.validation = comm::on_root(comm, [&] { return survey_validation(run); });
  check_files(run, survey, comm);
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
