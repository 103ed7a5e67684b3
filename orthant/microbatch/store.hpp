#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace orthant::microbatch {

/// What an algorithm takes for one task.
struct Measured {
  std::string algorithm;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  double error = 0;  ///< of its result; 0 where nobody looked
  bool operator==(const Measured&) const = default;
};

/// What was measured, by the key of the task: all that its time depends on apart from the machine. Choices have one
/// entry, the algorithm that was chosen; tables of candidates have one for each algorithm that can run the task.
using Records = std::map<std::string, std::vector<Measured>>;

/// A file that keeps records from run to run, separately for each kind of machine. Several processes may write it at
/// the same time. A file that is damaged or of another version counts as empty and is replaced.
class Store {
 public:
  /// `path` may be empty: nothing is remembered then. `machine` is the processor and the versions of all kernels.
  Store(std::string path, std::string machine) : path_(std::move(path)), machine_(std::move(machine)) {}

  [[nodiscard]] Records load() const;
  /// Why a file that is there is ignored; empty if it is missing or can be used.
  [[nodiscard]] std::string trouble() const;
  /// Adds records to the file. False if it cannot be written, or another process keeps its lock.
  [[nodiscard]] bool add(const Records& records) const;

 private:
  std::string path_;
  std::string machine_;
};

/// Where measurements are remembered: ORTHANT_CACHE, or kernels.json in orthant's folder of the user's cache; empty if
/// there is no such place.
std::string store_path();

}  // namespace orthant::microbatch
