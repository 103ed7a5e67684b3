#pragma once

#include "orthant/data/sets/dataset.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/data_options.hpp"

#include <memory>
#include <string>

namespace orthant::train {

/// What `graph` wants of one sample.
data::sets::SampleShape sample_shape(const model::Graph& graph);

/// What is to be known of a run's files before they are opened, as text: one rank finds it out for all. Throws Error
/// for files that cannot be read.
std::string survey_data(const DataOptions& options);

/// Opens the data of a run, with what survey_data() said; throws Error where it does not fit the network.
std::unique_ptr<data::sets::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                               const std::string& survey);

}  // namespace orthant::train
