#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::engine {

struct TraceEvent {
  int step = 0;               ///< index into Schedule::steps
  std::int64_t begin_ns = 0;  ///< steady clock
  std::int64_t end_ns = 0;
};

/// Times of steps, one event each. Reserve before running: recording does not allocate.
struct Trace {
  std::vector<TraceEvent> events;
};

}  // namespace orthant::engine
