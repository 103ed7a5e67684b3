#pragma once

#include "orthant/data/dataset.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/run_file.hpp"

#include <memory>
#include <vector>

namespace orthant::train {

/// What `graph` wants of one sample.
data::SampleShape sample_shape(const model::Graph& graph);

/// What is to be known of a run's files before they are opened, as text: one rank finds it out for all. Throws Error
/// for files that cannot be read.
std::string survey_data(const DataOptions& options);

/// Opens the data of a run, with what survey_data() said; throws Error where it does not fit the network.
std::unique_ptr<data::Dataset> open_data(const DataOptions& options, const model::Graph& graph,
                                         const std::string& survey);

/// The order of samples and how they are turned: functions of seed and epoch.
struct LoaderOptions {
  bool shuffle = false;
  std::uint64_t seed = 0;
  data::Augmentation augment{};
};

/// Puts this rank's boxes of mini-batches into the engine's buffers, epoch by epoch; what is left of an epoch is
/// dropped.
class Loader {
 public:
  /// Throws Error if the data has fewer samples than a mini-batch.
  Loader(const data::Dataset& dataset, const model::Graph& graph, const LoaderOptions& options);

  [[nodiscard]] std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  /// Loads the mini-batch of `step` (counts from 1).
  void load(std::int64_t step, engine::Engine& engine);

 private:
  void order_epoch(std::int64_t epoch);
  template <class T, class Memory, class Read>
  void load_boxes(const std::vector<schedule::Port>& ports, const tensor::Shape& shape, std::int64_t first,
                  std::vector<T>& scratch, Memory memory, Read read);

  const data::Dataset& dataset_;
  std::int64_t mini_batch_;
  std::int64_t steps_per_epoch_;
  LoaderOptions options_;
  data::SampleShape shape_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
  std::vector<float> values_;  ///< a box that is turned, or goes where memory has gaps
  std::vector<std::int32_t> labels_;
};

}  // namespace orthant::train
