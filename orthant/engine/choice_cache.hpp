#pragma once

#include "orthant/model/task.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace orthant::engine {

/// What was found fastest, and what it takes.
struct Choice {
  model::Algorithm algorithm = model::Algorithm::automatic;
  double seconds = 0;
  std::int64_t scratch_bytes = 0;
  bool operator==(const Choice&) const = default;
};

/// By the text of a task.
using Choices = std::map<std::string, Choice>;

/// A file that remembers choices from run to run, for every kind of machine. Processes may write it at the same time;
/// one that is damaged or of another version is taken for empty and written anew.
class ChoiceCache {
 public:
  /// `path` may be empty: nothing is remembered then.
  ChoiceCache(std::string path, std::string machine) : path_(std::move(path)), machine_(std::move(machine)) {}

  [[nodiscard]] Choices load() const;
  /// Adds choices to the file. False if it cannot be written.
  [[nodiscard]] bool store(const Choices& choices) const;

 private:
  std::string path_;
  std::string machine_;  ///< processor and versions
};

}  // namespace orthant::engine
