#pragma once

#include "orthant/oracle/prices.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/schedule/classes.hpp"
#include "orthant/schedule/schedule.hpp"

#include <array>
#include <string>
#include <vector>

namespace orthant::oracle {

/// What the time of a step is made of. Each moment of the rank that ends last belongs to one part.
enum class Part {
  forward,
  backward_data,
  backward_weights,
  update,
  halo,
  gather,
  redistribution,
  gradients,
  weights,
  statistics,
  loss,
  bubble,  ///< of a pipeline: waiting for another stage
  input    ///< waiting for samples
};
inline constexpr std::size_t part_count = 13;
const char* name_of(Part part);

struct StepOptions {
  model::Optimizer optimizer{.kind = model::OptimizerKind::sgd, .momentum = 0.9};
  int threads = 0;            ///< per rank; 0: the profile's
  int ranks_per_machine = 0;  ///< 0: as many as the profile has room for
  schedule::Mode mode = schedule::Mode::train;
  enum class Samples { none, store, files } samples = Samples::none;  ///< where they come from in every step
  int follow_all_up_to = 8;  ///< ranks: in larger jobs one rank of each class is followed
  /// Where one rank of each class would have more messages than this together, classes are made coarser, and if that is
  /// not enough some of them stand for those around them. 0: there is no limit.
  std::int64_t most_messages = 0;
  bool keep_timeline = false;  ///< Prediction::timelines
};

/// One step of a schedule in predicted time.
struct TimelineEvent {
  int step = 0;  ///< of the schedule
  double begin = 0, end = 0;
};
/// A rank that stands for its class, or for itself where all ranks are followed.
struct Timeline {
  int rank = 0;
  int members = 1;
  schedule::Schedule schedule{};
  std::vector<TimelineEvent> events{};
};

/// Bytes of the rank that needs most, by what they are for. They add up to `bytes_per_rank`.
struct Memory {
  std::int64_t weights = 0, gradients = 0, state = 0, activations = 0, halos = 0, messages = 0, workspace = 0,
               samples = 0, process = 0;
  std::int64_t arena_bytes = 0;     ///< what the engine allocates
  std::int64_t borrowed_bytes = 0;  ///< what the rank reads in the memory of others of its machine, who pay for it
  [[nodiscard]] std::int64_t total() const;
  /// What the system shows as the resident memory of the process: pages that several map count for each of them.
  [[nodiscard]] std::int64_t resident() const { return total() + borrowed_bytes; }
};

/// What one layer costs on the rank that ends last.
struct LayerTime {
  std::string name;
  double compute_seconds = 0, waiting_seconds = 0;
  std::array<double, part_count> parts{};
};

struct Prediction {
  double seconds = 0;                      ///< of one step
  double error = 0;                        ///< relative, one standard deviation
  std::array<double, part_count> parts{};  ///< seconds; they add up to `seconds`
  double exposed_seconds = 0;              ///< waiting for messages
  double hidden_seconds = 0;               ///< messages under way while the rank computed
  std::int64_t flops = 0;                  ///< of the whole step, all ranks
  schedule::Volume sent{};                 ///< of the busiest rank
  Memory memory{};
  bool fits = true;                  ///< into the memory of a machine of the profile
  std::int64_t available_bytes = 0;  ///< of a rank
  std::array<double, 3> known{};     ///< share of computing by Knowledge
  std::vector<LayerTime> layers{};
  std::vector<Timeline> timelines{};
  int classes = 0;
  std::int64_t size = 0;  ///< steps and messages of all schedules that were made: what its price grows with
  int followed = 0;       ///< schedules that were followed through time; fewer than classes where some take equal time
  int forced = 0;         ///< waits that had to be given up: more than none means that classes are no true image
  double lower_seconds = 0, price_seconds = 0;  ///< what it took to say all this
};

/// Time and memory of one step under a plan. Throws Error if the plan does not fit the graph. A plan that names no
/// kernels gets those that are fastest by the profile: see with_kernels().
Prediction predict(const model::Graph& graph, const plan::Plan& plan, const Profile& profile,
                   const StepOptions& options);

/// The same with prices that are kept from call to call, which is faster. They must be for the threads and ranks per
/// machine that the options say.
Prediction predict(const model::Graph& graph, const plan::Plan& plan, const Prices& prices, const StepOptions& options);

/// The plan with an algorithm for every convolution, as the profile's prices say. What it names already stays.
plan::Plan with_kernels(const model::Graph& graph, const plan::Plan& plan, const Prices& prices,
                        const StepOptions& options);

/// What limits a plan, in one line: "gradients: 41 % of the step waits for them, 12.5 GB/s between machines".
std::string bottleneck(const Prediction& prediction);

}  // namespace orthant::oracle
