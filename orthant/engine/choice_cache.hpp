#pragma once

#include "orthant/model/task.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace orthant::engine {

/// The fastest algorithm of a task, its time and its scratch memory.
struct Choice {
  model::Algorithm algorithm = model::Algorithm::automatic;
  double seconds = 0;
  std::int64_t scratch_bytes = 0;
  bool operator==(const Choice&) const = default;
};

/// Choices by task_key.
using Choices = std::map<std::string, Choice>;

/// A file that keeps choices from run to run, separately for each kind of machine. Several processes may write it at
/// the same time. A file that is damaged or of another version counts as empty and is replaced.
class ChoiceCache {
 public:
  /// `path` may be empty: nothing is remembered then.
  ChoiceCache(std::string path, std::string machine) : path_(std::move(path)), machine_(std::move(machine)) {}

  [[nodiscard]] Choices load() const;
  /// Why a file that is there is ignored; empty if it is missing or can be used.
  [[nodiscard]] std::string trouble() const;
  /// Adds choices to the file. False if it cannot be written, or another process keeps its lock.
  [[nodiscard]] bool store(const Choices& choices) const;

 private:
  std::string path_;
  std::string machine_;  ///< processor and versions
};

}  // namespace orthant::engine
