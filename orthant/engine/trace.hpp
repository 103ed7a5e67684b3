#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::engine {

struct TraceEvent {
  int step = 0;               ///< index into Schedule::steps
  std::int64_t begin_ns = 0;  ///< steady clock
  std::int64_t end_ns = 0;
  std::int64_t polled_ns = 0;  ///< until when messages were polled after it; end_ns if they were not
};

/// Times of steps, one event each. Reserve before running: recording does not allocate.
struct Trace {
  std::vector<TraceEvent> events;
};

}  // namespace orthant::engine
