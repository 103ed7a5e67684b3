#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/model/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace orthant::train {

/// How far values of one channel are from their targets.
struct ValueScore {
  double mean_squared_error = 0, mean_absolute_error = 0;
  double target_mean = 0, target_variance = 0;

  /// The share of the targets' variance that is explained (R squared); predicting their mean has 0. Nothing if all
  /// targets are equal.
  [[nodiscard]] std::optional<double> explained() const;
};

/// How well a network does on some samples. The loss is that of all of them as one mini-batch.
struct Scores {
  std::int64_t samples = 0;
  double loss = 0;
  bool labels = false;
  // Values:
  double mean_squared_error = 0, mean_absolute_error = 0;
  std::vector<ValueScore> channels;
  // Labels:
  double accuracy = 0;   ///< share of pixels with the right class
  double mean_dice = 0;  ///< over the classes that have one
  /// Per class 2 |both| / (|predicted| + |true|) over all pixels; nothing where a class is in neither.
  std::vector<std::optional<double>> dice;
};

/// Samples of a data set that went through an engine together. Samples that only fill up the mini-batch are not
/// counted.
struct EvaluatedBatch {
  std::int64_t first = 0, samples = 0;
};

/// Sums over the pixels of one rank, in double.
class ScoreSums {
 public:
  explicit ScoreSums(const model::Graph& graph);

  /// The predictions and targets that `engine` holds of a mini-batch.
  void add(engine::Engine& engine, const EvaluatedBatch& batch);
  /// Collective. The scores of all ranks' pixels; sums are taken in the order of the ranks.
  [[nodiscard]] Scores total(comm::Comm& comm) const;

 private:
  void add_values(std::span<const float> prediction, std::span<const float> wanted);
  void add_label(std::span<const float> prediction, std::int32_t label);

  model::Loss loss_;
  bool labels_;
  std::size_t channels_;
  std::int64_t pixels_per_sample_;
  std::int64_t samples_ = 0;
  std::vector<double> sums_;           ///< see scores.cpp
  std::vector<double> probabilities_;  ///< of one pixel
};

}  // namespace orthant::train
