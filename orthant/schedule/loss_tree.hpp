#pragma once

#include "orthant/tensor/box.hpp"

#include <algorithm>

namespace orthant::schedule {

/// In which members 1 to `others` hear of the losses from member 0.
struct LossTree {
  static constexpr int most_children = 4;

  static int parent(int member) { return (member - 1) / most_children; }
  static tensor::Range children(int member, int others) {
    const std::int64_t first = std::int64_t{member} * most_children + 1;
    return {std::min<std::int64_t>(first, others + 1), std::min<std::int64_t>(first + most_children, others + 1)};
  }
};

}  // namespace orthant::schedule
