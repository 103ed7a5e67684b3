#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// How a kernel's mini-batch is divided into pieces, each with its own algorithm, so that its workspace stays within a
/// limit (Oyama et al., Accelerating Deep Learning Frameworks with Micro-batches, CLUSTER 2018). Pure functions of what
/// was measured: nothing here knows a convolution.
namespace orthant::microbatch {

/// One way to compute some samples of a kernel at once, as it was measured.
struct Candidate {
  std::string algorithm;
  std::int64_t samples = 1;
  /// The samples are computed slab by slab along the outermost spatial dim, in so many of about equal size.
  std::int64_t slabs = 1;
  double seconds = 0;  ///< for all slabs of all these samples
  std::int64_t workspace_bytes = 0;
  /// Its result cannot be added to that of earlier pieces, so it can only be the first one.
  bool first_only = false;
  bool operator==(const Candidate&) const = default;
};

/// All candidates of a kernel, which computes so many samples.
struct Table {
  std::string kernel;
  std::int64_t samples = 1;
  std::vector<Candidate> candidates;
};

/// The pieces of a kernel in the order in which they are computed. Their times add up and they share one workspace.
struct Division {
  std::vector<Candidate> pieces;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
};

/// Which numbers of samples are tried as one piece.
enum class Policy {
  undivided,     ///< all samples
  power_of_two,  ///< 1, 2, 4, ... and all samples
  all            ///< every number
};

/// Those numbers for a mini-batch, in increasing order.
std::vector<std::int64_t> piece_sizes(Policy policy, std::int64_t samples);

}  // namespace orthant::microbatch
