#pragma once

#include "orthant/cli/parallel.hpp"
#include "orthant/train/evaluator.hpp"
#include "orthant/train/run_file.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace orthant::cli {

/// A run file and the weights of it that are to be used: what `evaluate` and `infer` have in common.
struct EvaluationArguments {
  std::string run, weights;
  std::vector<std::string> overrides;
  ParallelArguments parallel;
  bool json = false;
};

/// RUN, key=value, --weights, --json and those of add_parallel().
void add_evaluation(CLI::App& command, EvaluationArguments& arguments);

/// What can be refused before ranks are started: the run, its network and plan, and the weights.
void check_evaluation(const EvaluationArguments& arguments, int ranks);

/// A network with its weights, ready to be run on all ranks.
struct EvaluationRun {
  /// Collective.
  EvaluationRun(const EvaluationArguments& arguments, comm::Comm& ranks);

  train::RunFile run;
  model::Graph graph;
  plan::Plan plan;
  comm::Comm& comm;
  std::unique_ptr<train::Evaluator> evaluator;

  /// Collective.
  void load_weights(const EvaluationArguments& arguments);
  /// "network", "ranks" and "memory" for people, on rank 0.
  void print() const;
};

}  // namespace orthant::cli
