#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/data_options.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orthant::train {

/// The shapes of the input and the target that `graph` expects of one sample.
data::sets::SampleShape sample_shape(const model::Graph& graph);

/// Describes a run's files as text, which open_data() needs: one rank looks at them for all. Throws Error for files
/// that cannot be read.
std::string survey_data(const DataOptions& options);
/// The files of a run's data, as they were named or found.
std::vector<std::string> files_of(const DataOptions& options);

/// Opens the data of a run; `survey` is what survey_data() returned. Throws Error if they do not fit the network.
std::unique_ptr<data::sets::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                               const std::string& survey);

}  // namespace orthant::train
