#pragma once

#include "orthant/model/document.hpp"

#include <cstdint>
#include <string>

namespace orthant::train {

/// What a run does about numbers that are not finite, and about ranks whose weights differ.
struct NumberOptions {
  enum class Action {
    abort,    ///< the run ends
    skip,     ///< the update of the step is dropped
    rollback  ///< the run goes back to its newest checkpoint and leaves the step out
  };
  Action action = Action::abort;
  std::int64_t most_skips = 0;       ///< in a row
  std::int64_t compare_every = 100;  ///< steps between comparisons of what several ranks hold; 0: never
  bool operator==(const NumberOptions&) const = default;
};

/// Reads the value of a run's key `on_non_finite`: abort, rollback or {skip: 3}.
void read_action(const model::Document& value, const std::string& origin, NumberOptions& numbers);

}  // namespace orthant::train
