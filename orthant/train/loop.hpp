#pragma once

#include "orthant/train/run_file.hpp"

#include <string>

namespace orthant::train {

/// What a run came to.
struct Summary {
  std::int64_t steps = 0, epochs = 0;
  std::int64_t averaged_steps = 0;  ///< how many steps the two losses are means of
  double first_loss = 0, last_loss = 0;
  double seconds = 0;
  double samples_per_second = 0;
  std::int64_t arena_bytes = 0;
  std::string directory, weights;
  bool stopped = false;  ///< by a signal; the weights are those of the last step
};

/// Trains as the run says and writes the run directory. `name` names it where the run does not;
/// `trace_path` is empty or receives a Chrome trace.
Summary train(const RunFile& run, const std::string& name, const std::string& trace_path);

}  // namespace orthant::train
