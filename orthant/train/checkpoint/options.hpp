#pragma once

#include "orthant/model/document.hpp"

#include <cstdint>
#include <string>

namespace orthant::train::checkpoint {

/// When a run writes checkpoints and how many it keeps.
struct Options {
  bool on = true;
  std::int64_t every = 0;  ///< steps; 0: `minutes` says when
  double minutes = 10;
  std::int64_t keep = 2;
  bool aborts_on_error = false;  ///< else a checkpoint that cannot be written is a warning
  bool operator==(const Options&) const = default;
};

/// Reads the value of a run's key `checkpoint`: a map, or `off`.
Options read_options(const model::Document& value, const std::string& origin);

}  // namespace orthant::train::checkpoint
