#pragma once

#include "orthant/engine/choices.hpp"
#include "orthant/engine/choose.hpp"
#include "orthant/engine/measuring_time.hpp"
#include "orthant/kernels/conv.hpp"

#include <optional>
#include <string>
#include <vector>

namespace orthant::engine {

/// A convolution whose algorithm is to be chosen.
struct OpenTask {
  std::string key;
  const schedule::Step* step = nullptr;  ///< the first of those with this key
  double flops = 0;                      ///< of one of them
  int times = 0;                         ///< in a step of the network

  [[nodiscard]] double step_flops() const { return flops * times; }
};

/// The convolution of a step if its algorithm is automatic, or null.
const model::ConvTask* open_conv(const schedule::Step& step);

/// Those of a schedule, the most expensive first.
std::vector<OpenTask> open_tasks(const schedule::Schedule& schedule, const ChooseOptions& options);

/// The task itself or, if it has many samples, the same with so few that a run is short: per sample it takes as long.
model::ConvTask tried_part(const model::ConvTask& task, const ChooseOptions& options);

/// Measures the tasks of one rank while there is time.
class Measuring {
 public:
  Measuring(const schedule::Schedule& schedule, const ChooseOptions& options);

  /// Adds what earlier runs measured, which improves the estimate of how long a step takes.
  void know(const OpenTask& task, const Choice& choice);
  /// One task after the other. The algorithm of those that were not measured is automatic.
  Choices run(const std::vector<OpenTask>& tasks);
  [[nodiscard]] double seconds() const { return time_.spent(); }

 private:
  void report();
  std::optional<Choice> choose(const OpenTask& task);
  /// `part` is what is run of the task, by the candidates.
  std::optional<Choice> compare(const OpenTask& task, const model::ConvTask& part,
                                const std::vector<kernels::ConvCandidate>& candidates);

  const schedule::Schedule& schedule_;
  const ChooseOptions& options_;
  MeasuringTime time_;
  MeasuringProgress progress_;
  double flops_done_ = 0, flops_left_ = 0;
};

}  // namespace orthant::engine
