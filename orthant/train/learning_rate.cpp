#include "orthant/train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orthant::train {

double rate_at(const LearningRate& rate, std::int64_t step, std::int64_t steps) {
  using Kind = LearningRate::Kind;
  if (step <= rate.warmup_steps) return rate.base * static_cast<double>(step) / static_cast<double>(rate.warmup_steps);
  const std::int64_t since = step - rate.warmup_steps - 1;
  const std::int64_t span = std::max<std::int64_t>(steps - rate.warmup_steps, 1);
  const double t = static_cast<double>(since) / static_cast<double>(span);
  const std::int64_t whole_periods = since / rate.every;
  switch (rate.kind) {
    case Kind::constant: break;
    case Kind::step: return rate.base * std::pow(rate.factor, static_cast<double>(whole_periods));
    case Kind::linear: return rate.base + (rate.end - rate.base) * t;
    case Kind::polynomial: return rate.end + (rate.base - rate.end) * std::pow(1 - t, rate.power);
    case Kind::cosine: return rate.end + (rate.base - rate.end) * (1 + std::cos(std::numbers::pi * t)) / 2;
  }
  return rate.base;
}

}  // namespace orthant::train
