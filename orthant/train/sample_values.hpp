#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/model/graph.hpp"
#include "orthant/train/scores.hpp"

#include <span>
#include <vector>

namespace orthant::train {

/// True if the network's output is some numbers per sample, not a volume.
bool has_sample_values(const model::Graph& graph);

/// The values that a network predicts for the first samples, and their targets.
class SampleValues {
 public:
  /// The network must have sample values. Labels count as one number.
  SampleValues(const model::Graph& graph, std::int64_t samples);

  /// Adds the values of a mini-batch that this rank holds.
  void add(engine::Engine& engine, const EvaluatedBatch& batch);
  /// Collective. Every rank gets the numbers of all.
  void share(comm::Comm& comm);

  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] std::span<const double> predicted(std::int64_t sample) const { return row(predicted_, sample); }
  [[nodiscard]] std::span<const double> actual(std::int64_t sample) const { return row(actual_, sample); }

 private:
  [[nodiscard]] std::span<const double> row(const std::vector<double>& rows, std::int64_t sample) const;

  std::int64_t samples_;
  bool labels_;
  std::vector<double> predicted_, actual_;  ///< sample by sample; zeros where another rank has them
};

}  // namespace orthant::train
