#include "orthant/train/open_data.hpp"

#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/generate/synthetic.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/data/sets/npy_dataset.hpp"

#include <utility>

namespace orthant::train {
namespace {

std::vector<std::string> expand(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : data::io::matching_paths(pattern)) paths.push_back(std::move(path));
  }
  return paths;
}

std::unique_ptr<data::sets::Dataset> open_kind(const DataOptions& options, const data::sets::SampleShape& shape,
                                               const std::string& survey) {
  switch (options.kind) {
    case DataOptions::Kind::synthetic:
      return std::make_unique<data::generate::SyntheticDataset>(shape, options.samples, options.seed);
    case DataOptions::Kind::npy:
      return std::make_unique<data::sets::NpyDataset>(expand(options.inputs), expand(options.targets), shape);
    case DataOptions::Kind::hdf5: break;
  }
  return std::make_unique<data::sets::Hdf5Dataset>(data::formats::outlines_from_text(survey), options.hdf5, shape);
}

}  // namespace

data::sets::SampleShape sample_shape(const model::Graph& graph) {
  data::sets::SampleShape shape{.input = graph.nodes.front().shape,
                                .target = model::target_shape(graph),
                                .spatial_count = graph.spatial_count,
                                .labels = model::takes_labels(graph.loss),
                                .classes = graph.nodes.back().shape.c};
  shape.input.n = 1;
  shape.target.n = 1;
  return shape;
}

std::vector<std::string> files_of(const DataOptions& options) {
  if (options.kind == DataOptions::Kind::synthetic) return {};
  if (options.kind == DataOptions::Kind::hdf5) return data::io::list_files(options.files, {".h5", ".hdf5"});
  std::vector<std::string> paths = expand(options.inputs);
  for (std::string& path : expand(options.targets)) paths.push_back(std::move(path));
  return paths;
}

std::string survey_data(const DataOptions& options) {
  if (options.kind != DataOptions::Kind::hdf5) return "";
  return data::formats::outlines_text(
      data::formats::survey_hdf5(data::io::list_files(options.files, {".h5", ".hdf5"})));
}

std::unique_ptr<data::sets::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                               const std::string& survey) {
  const data::sets::SampleShape shape = sample_shape(graph);
  std::unique_ptr<data::sets::Dataset> dataset = open_kind(options, shape, survey);
  if (options.transforms.empty()) return dataset;
  return std::make_unique<data::sets::TransformedDataset>(std::move(dataset), options.transforms, shape);
}

}  // namespace orthant::train
