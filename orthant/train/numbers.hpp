#pragma once

#include "orthant/engine/session.hpp"

#include <string>
#include <vector>

namespace orthant::train {

/// Collective. Throws CollectiveError (87) that names tensor and rank if a weight or a running statistic is not finite.
void check_finite_weights(const engine::Session& session);

/// Collective. Where numbers that are not finite are, after a step that has made some: "rank 1 has nan in
/// 'conv1.weight'"; empty if no weight, running statistic or number of the optimizer is.
std::string non_finite_text(const engine::Session& session);

/// Collective. Compares what several ranks hold of the same weights by its checksums. Throws CollectiveError (76) that
/// names tensor and ranks if they differ.
void check_replicas(const engine::Session& session, std::int64_t step);

/// A copy of everything that a step changes, with which it can be taken back.
class StepCopy {
 public:
  explicit StepCopy(const engine::Engine& engine);
  /// Between steps.
  void take(const engine::Engine& engine);
  /// Collective.
  void put_back(engine::Engine& engine, comm::Comm& comm) const;

 private:
  std::vector<int> buffers_;
  std::vector<std::vector<float>> copies_;
};

}  // namespace orthant::train
