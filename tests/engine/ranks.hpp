#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/schedule/schedule.hpp"

#include <map>
#include <string>
#include <vector>

namespace orthant::test {

/// What the numbers of inputs, targets and parameters are: functions of their global position, whatever the cut.
enum class Data {
  integers,  ///< small whole numbers: sums are exact in any order
  reals,
};

/// What all ranks together came to, put together to whole tensors.
struct Outcome {
  std::vector<double> losses;                                                      ///< of each run, the weighted sum
  std::vector<float> output;                                                       ///< of the last run; NCDHW
  std::map<std::pair<std::string, tensor::RankGroup>, std::vector<float>> shards;  ///< as their holders have them
  std::map<std::string, std::vector<float>> tensors;  ///< gradients, or weights after updates, in the order of files
};

struct RanksOptions {
  Data data = Data::integers;
  std::uint64_t seed = 1;  ///< of inputs and targets
  int runs = 1;
  double learning_rate = 0.01;
  schedule::LowerOptions lower{};
  int ranks_per_machine = 1 << 20;  ///< those of one machine share memory
  std::uint64_t delays = 0;         ///< see ThreadCommOptions
};

/// Runs `graph` under `plan` with as many threads as it has ranks, each with an Engine of its own. Fails (as a gtest
/// expectation) if ranks disagree about what all of them should know, or if what was sent is not what the schedules
/// say.
Outcome run_ranks(const model::Graph& graph, const plan::Plan& plan, const RanksOptions& options);

/// The same for one rank of a job that is there already: this rank's part of the outcome, with NaN elsewhere.
Outcome run_rank(const model::Graph& graph, const plan::Plan& plan, const RanksOptions& options, comm::Comm& comm);

/// The same on one rank in double, by the reference definitions.
Outcome run_in_double(const model::Graph& graph, const RanksOptions& options);

/// What the ranks read, as whole tensors in NCDHW; targets must be values.
std::vector<float> whole_input(const model::Graph& graph, const RanksOptions& options);
std::vector<float> whole_target(const model::Graph& graph, const RanksOptions& options);

/// Where two outcomes differ, bit for bit; "" if nowhere.
std::string difference(const Outcome& actual, const Outcome& expected);
/// The same where `part` has numbers.
std::string part_difference(const Outcome& part, const Outcome& expected);
/// The relative error of the output and of every tensor, in the Euclidean norm.
std::map<std::string, double> errors(const Outcome& actual, const Outcome& expected);

}  // namespace orthant::test
