#pragma once

#include "orthant/model/task.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace orthant::model {

/// Some samples of a convolution, computed at once or slab by slab along the outermost spatial dim that has more than
/// one cell. Slabs are parts of what the pass computes (of dst for gradients of weights), and read what they overlap
/// in.
struct ConvPiece {
  Algorithm algorithm = Algorithm::automatic;
  std::int64_t samples = 1;
  std::int64_t slabs = 1;
  bool operator==(const ConvPiece&) const = default;
};

/// The tasks that a convolution is divided into, in order; on the same arguments they do what it does. Pieces take
/// samples one after the other; where the convolution has more samples the list begins again, and where it has fewer
/// the last piece ends early. Slabs are never thinner than a cell. Gradients of weights are written by the first task
/// and added to by the others. Without pieces the task itself.
std::vector<ConvTask> divided(const ConvTask& whole, std::span<const ConvPiece> pieces);

/// How many slabs a convolution can have at most.
std::int64_t most_slabs(const ConvTask& task);

}  // namespace orthant::model
