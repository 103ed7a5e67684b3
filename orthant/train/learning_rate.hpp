#pragma once

#include <cstdint>

namespace orthant::train {

/// How the learning rate moves over a run. With W warm-up steps it rises linearly from base / W to base at step W;
/// then, with t = (step - W - 1) / (steps - W) in [0, 1):
///   constant    base
///   step        base * factor^k, k = number of whole `every` steps since the warm-up
///   linear      base + (end - base) * t
///   polynomial  end + (base - end) * (1 - t)^power
///   cosine      end + (base - end) * (1 + cos(pi t)) / 2
struct LearningRate {
  enum class Kind { constant, step, linear, polynomial, cosine };
  Kind kind = Kind::constant;
  double base = 0.01;
  double end = 0;
  double power = 2;
  double factor = 0.1;
  std::int64_t every = 1000;
  std::int64_t warmup_steps = 0;

  bool operator==(const LearningRate&) const = default;
};

/// The rate of step `step` (counts from 1) of `steps`.
double rate_at(const LearningRate& rate, std::int64_t step, std::int64_t steps);

}  // namespace orthant::train
