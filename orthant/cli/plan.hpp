#pragma once

#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/planner/planner.hpp"

#include <string>

namespace orthant::cli {

/// The command line of `orthant plan`.
struct PlanArguments {
  NetworkArguments network;
  ParallelArguments parallel;  ///< --ranks, --threads and how to cut; starts no ranks
  std::string machine;
  std::int64_t memory_bytes = 0;  ///< of a rank; 0: the machine's
  int ranks_per_machine = 0;      ///< 0: as many as it has room for
  std::string optimizer = "sgd";
  std::string data = "none";  ///< where samples come from in every step
  std::int64_t samples = 0;   ///< of an epoch
  std::string sweep, csv, svg, timeline, compare, output;
  bool json = false;
};

/// What is asked, with all that it takes to answer.
struct Question {
  model::Graph graph;
  oracle::Profile profile;
  planner::PlanningOptions options;
  std::int64_t samples = 0;  ///< of an epoch; 0: not asked for

  [[nodiscard]] std::int64_t mini_batch() const { return graph.nodes.front().shape.n; }
};

/// True if the arguments name a plan; otherwise it is to be searched for.
bool names_a_plan(const PlanArguments& arguments);

/// One plan, predicted as if it had been found. `ranks` are those of the question.
planner::Planned price_given(const PlanArguments& arguments, const Question& question);

}  // namespace orthant::cli
