#pragma once

#include "orthant/schedule/analysis.hpp"

namespace orthant::schedule {

/// The tags of exchanges: all ranks have the same for the same exchange, and no two in a step are equal.
struct Tags {
  /// More exchanges than one unit has in one pass.
  static constexpr int per_unit = 64;

  int units = 0, micro_batches = 0;

  [[nodiscard]] int forward(int micro_batch, int unit) const { return (2 * micro_batch * units + unit) * per_unit; }
  [[nodiscard]] int backward(int micro_batch, int unit) const {
    return ((2 * micro_batch + 1) * units + unit) * per_unit;
  }
  /// One past the tags of units. No unit has so many exchanges that it uses its last tag, so the losses take that.
  [[nodiscard]] int end_of_units() const { return 2 * micro_batches * units * per_unit; }
  [[nodiscard]] int losses() const { return end_of_units() - 1; }
  /// A bucket is known by the number of its first parameter. It has two: for its gradients and for its results.
  [[nodiscard]] int gradients(int parameter) const { return end_of_units() + 2 * parameter; }
  [[nodiscard]] int results(int parameter) const { return gradients(parameter) + 1; }
};

inline Tags tags_of(const Analysis& analysis) {
  return {.units = static_cast<int>(analysis.units().size()), .micro_batches = analysis.plan().micro_batches};
}

}  // namespace orthant::schedule
