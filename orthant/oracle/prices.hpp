#pragma once

#include "orthant/model/task.hpp"
#include "orthant/oracle/profile.hpp"
#include "orthant/schedule/schedule.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace orthant::oracle {

/// What a task is remembered by in a profile: its signature and, for convolutions, the algorithm.
std::string task_key(const model::Task& task);
Features features_of(const model::Task& task);
/// A number that tells tasks with different keys apart, found much faster than the key. Two that differ share one with
/// a probability of 2^-64.
std::uint64_t fingerprint(const model::Task& task);

/// How a price is known, from the best to the poorest.
enum class Knowledge { measured, interpolated, curve };
const char* name_of(Knowledge knowledge);

struct Price {
  double seconds = 0;
  double error = 0;  ///< relative, one standard deviation
  Knowledge knowledge = Knowledge::curve;
};

/// Which kernel a convolution should run, and what that takes.
struct PricedAlgorithm {
  model::Algorithm algorithm = model::Algorithm::automatic;
  Price price;
};

/// The prices of tasks on a machine that is used in one way. Remembers what it has been asked. The profile must outlive
/// it.
class Prices {
 public:
  /// Takes the setting of the profile for so many threads and ranks, or the nearest, scaled by its peak.
  Prices(const Profile& profile, int threads, int ranks_per_machine);

  [[nodiscard]] const Profile& profile() const { return *profile_; }
  [[nodiscard]] const Setting& setting() const { return *setting_; }
  /// Time of one execution of a task, without messages that it looks after meanwhile.
  [[nodiscard]] Price of(const model::Task& task) const;
  /// Scratch memory of its kernel as it was measured; otherwise that of the task of its family that is most like it.
  [[nodiscard]] std::int64_t scratch_bytes(const model::Task& task) const;
  /// The algorithms that can run a convolution whose algorithm is open. Calibration measures a task with all that can;
  /// of tasks that were not measured it is assumed that whatever runs one of a family runs all, but for oneDNN, which
  /// wants dense tensors.
  [[nodiscard]] const std::vector<PricedAlgorithm>& algorithms(const model::ConvTask& open) const;
  /// The fastest of them. `automatic` if the machine has none to choose from.
  [[nodiscard]] PricedAlgorithm fastest(const model::ConvTask& open) const;

 private:
  [[nodiscard]] Price compute(const model::Task& task) const;
  [[nodiscard]] Price estimate(const Features& features) const;
  [[nodiscard]] Price by_curve(const Features& features) const;
  [[nodiscard]] double roofline_seconds(const Features& features) const;

  const Profile* profile_;
  const Setting* setting_;
  double scale_ = 1;  ///< seconds of this setting per measured second
  double scale_error_ = 0;
  std::unordered_map<std::string, std::vector<const MeasuredTask*>> families_;
  mutable std::unordered_map<std::uint64_t, Price> known_;  ///< by fingerprint()
  mutable std::unordered_map<std::uint64_t, std::vector<PricedAlgorithm>> choices_;
  mutable std::unordered_map<std::uint64_t, std::int64_t> scratch_;
};

}  // namespace orthant::oracle
