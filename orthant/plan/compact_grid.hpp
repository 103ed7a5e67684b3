#pragma once

#include "orthant/tensor/distribution.hpp"

#include <string>

namespace orthant::plan {

/// A way of cutting a whole network, as people write it: "n2d2h2", "n2f4", "c2f2", "n2p2".
struct CompactGrid {
  int n = 1;  ///< sample groups
  int f = 1;  ///< filter parts
  int c = 1;  ///< parts of the sum over src channels
  int d = 1, h = 1, w = 1;
  int p = 1;  ///< pipeline stages

  bool operator==(const CompactGrid&) const = default;
};

/// Throws Error(usage) saying what is wrong and what would be right.
CompactGrid parse_grid(const std::string& text);
/// "n2d2h2"; "1" if nothing is cut.
std::string to_text(const CompactGrid& grid);

/// The ranks of one stage, and of all.
int stage_ranks(const CompactGrid& grid);
int total_ranks(const CompactGrid& grid);
/// How a dst is cut in one stage: filters and channels both cut its channels.
tensor::Grid dst_grid(const CompactGrid& grid);

}  // namespace orthant::plan
