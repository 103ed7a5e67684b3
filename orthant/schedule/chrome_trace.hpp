#pragma once

#include "orthant/base/json_fwd.hpp"
#include "orthant/schedule/schedule.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace orthant::schedule {

/// When a step ran, by whatever clock.
struct TimedStep {
  int step = 0;  ///< index into Schedule::steps
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t polled_ns = 0;  ///< until when messages were polled after it; end_ns if they were not
};

/// Whose events are written.
struct TracedRank {
  const Schedule& schedule;
  int rank = 0;
  std::string title{};                               ///< "rank 3"
  std::int64_t origin_ns = 0;                        ///< the trace begins here
  std::function<std::string(int)> implementation{};  ///< of a step, by its index; may be missing
};

/// The events of one rank as lines of a Chrome trace, measured or predicted. pid is the rank; the first row has one
/// event per step with its implementation, flops and buffers, the rows below it the messages from their start to their
/// finish.
class ChromeEvents {
 public:
  explicit ChromeEvents(TracedRank traced);
  void add(const TimedStep& event);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add_entry(const base::Json& entry);
  void add_event(const std::string& name, const char* category, int row, const TimedStep& when,
                 const base::Json& arguments);
  int row_for(std::int64_t begin_ns, std::int64_t end_ns);

  TracedRank traced_;
  std::vector<std::int64_t> begun_;  ///< per exchange
  std::vector<std::int64_t> rows_;   ///< when each ends
  std::string text_;
};

/// The whole file, from the texts of all ranks.
std::string chrome_trace(std::span<const std::string> texts);

}  // namespace orthant::schedule
