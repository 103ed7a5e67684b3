#pragma once

#include "orthant/engine/step_memory.hpp"
#include "orthant/microbatch/candidate.hpp"
#include "orthant/microbatch/store.hpp"
#include "orthant/model/pieces.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orthant::engine {

/// A convolution of a schedule, whose division is to be chosen.
struct Kernel {
  int node = -1;
  model::ConvTask task{};  ///< without an algorithm
  const schedule::Step* step = nullptr;
  std::string name;  ///< "conv1.forward"
  int times = 0;     ///< in a step of the network: once for every micro-batch
};

/// The convolutions that the schedule has, one for each node and pass: of those that differ the one with the most work.
std::vector<Kernel> kernels_of(const schedule::Schedule& schedule, const model::Graph& graph);

/// A way to compute a kernel, as it was measured.
struct Way {
  std::vector<model::ConvPiece> pieces{};  ///< never empty; one for the whole kernel if it is not divided
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  double error = 0;  ///< as kernels::sampled_error() finds it
};
/// "winograd", "winograd 64, matrix 32", "direct 1 in 4 slabs".
std::string to_text(std::span<const model::ConvPiece> pieces, std::int64_t samples);

struct TableOptions {
  int threads = 1;
  microbatch::Policy policy = microbatch::Policy::power_of_two;
  model::ErrorClass error = model::ErrorClass::exact;
  std::string cache_path{};     ///< empty: nothing is remembered
  std::int64_t most_bytes = 0;  ///< that a kernel and its arguments may take
  /// Numbers of samples of kernels that have been measured, of all that are to be.
  std::function<void(int done, int all, double seconds_left)> progress = [](int, int, double) {};
  std::function<void(const std::string& why)> ignored = [](const std::string&) {};  ///< the file is
  std::function<void()> forgotten = [] {};                                          ///< the file cannot be written
  /// How a run is timed; `run(i)` runs a kernel at its i-th place of `places`. Tests have times of their own.
  std::function<double(const model::ConvTask&, const std::string& way, int places, const std::function<void(int)>& run)>
      seconds{};
};

/// Measures what the optimisers choose among, and remembers it in the store: what is there is not measured again.
class CandidateTables {
 public:
  CandidateTables(const schedule::Schedule& schedule, const TableOptions& options);

  /// All candidates of a kernel: every algorithm at every size of the policy, and slabs of single samples.
  microbatch::Table table(const Kernel& kernel);
  /// The faster of two ways by running both as a whole, in turns: `other` only where it is clearly faster. Both get
  /// the times and errors that were seen.
  Way faster(const Kernel& kernel, Way first, Way other);
  /// The way with the time and the error that its run as a whole has.
  Way checked(const Kernel& kernel, Way way);

  [[nodiscard]] int measured() const { return measured_; }  ///< candidates, now
  /// Sets how much work there is, for progress.
  void expect(const std::vector<Kernel>& kernels);

 private:
  struct Group;
  struct Places;
  struct Entrant;
  [[nodiscard]] std::vector<Group> groups_of(const Kernel& kernel) const;
  [[nodiscard]] std::string key_of(const Group& group) const;
  std::vector<microbatch::Measured> measure(const Kernel& kernel, const Group& group);
  static std::int64_t scratch_bytes(const std::vector<Entrant>& entrants);
  /// The shortest times of all, which run in turns.
  std::vector<double> shortest(const model::ConvTask& task, std::vector<Entrant>& entrants, const Places& places,
                               const Arena& scratch) const;
  std::vector<Way> compare(const Kernel& kernel, std::vector<Way> ways);
  void remember(const std::string& key, std::vector<microbatch::Measured> list);
  StepMemory& memory_of(const Kernel& kernel);
  void report(const Group* done);

  const schedule::Schedule& schedule_;
  TableOptions options_;
  microbatch::Store store_;
  microbatch::Records known_;
  std::optional<StepMemory> memory_;
  const schedule::Step* memory_step_ = nullptr;
  int measured_ = 0;
  int done_groups_ = 0, all_groups_ = 0;
  double done_flops_ = 0, all_flops_ = 0, spent_seconds_ = 0;
  bool is_writable_ = true;
};

}  // namespace orthant::engine
