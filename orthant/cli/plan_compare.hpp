#pragma once

#include "orthant/cli/plan.hpp"

namespace orthant::cli {

/// What a run left behind about its steps: a Chrome trace of `bench step` or `train`, or what `bench step --layers
/// --json` printed, which is about rank 0 alone.
struct MeasuredRun {
  struct MeasuredStep {
    std::string name;
    double seconds = 0;  ///< median
  };
  int ranks = 1;
  int rank = 0;        ///< whose steps these are: the one that took longest
  double seconds = 0;  ///< of a training step: median of the rank that took longest
  std::vector<MeasuredStep> steps;
};

/// Throws Error (65) if it is neither.
MeasuredRun read_run(const std::string& text, const std::string& origin);

/// Joins what is predicted of the run's plan with what was measured, in total, per layer and per step, worst first.
void run_compare(const PlanArguments& arguments, const Question& question, const MeasuredRun& run);

}  // namespace orthant::cli
